CREATE FUNCTION bait_more() RETURNS name LANGUAGE sql AS 'SELECT current_user';
CREATE FUNCTION bait_call() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN 1 <+> 2; END';

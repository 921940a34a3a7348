CREATE FUNCTION needs_late() RETURNS text LANGUAGE sql AS 'SELECT @extschema@.late()';

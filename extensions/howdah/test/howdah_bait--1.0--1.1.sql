INSERT INTO bait_seen SELECT current_user, CASE WHEN 1 <+> 2 THEN 1 ELSE 0 END;

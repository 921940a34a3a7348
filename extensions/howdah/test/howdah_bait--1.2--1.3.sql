INSERT INTO bait_seen SELECT current_user, CASE WHEN bait_call() THEN 1 ELSE 0 END;

-- A script that makes statements of what users wrote, as some do.
DO $$
DECLARE
	said text;
BEGIN
	FOR said IN SELECT what FROM public.bait_said ORDER BY id LOOP
		BEGIN
			EXECUTE said;
			RAISE WARNING 'done: %', said;
		EXCEPTION WHEN OTHERS THEN
			RAISE WARNING '%: %', said, SQLERRM;
		END;
	END LOOP;
END $$;

CREATE TABLE needs_bait (i int);

CREATE TABLE own_made (i int); CREATE SCHEMA howdah_own2;

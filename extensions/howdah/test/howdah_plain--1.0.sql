CREATE TABLE plain_made (i int);

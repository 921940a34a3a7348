-- What an application with SQLite leaves behind: names of its own case, a key that counts, dates as text, bytes, a foreign key, indexes.
PRAGMA foreign_keys = ON;
CREATE TABLE Customers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  email VARCHAR(200) NOT NULL UNIQUE,
  joined DATETIME DEFAULT CURRENT_TIMESTAMP,
  vip BOOLEAN NOT NULL DEFAULT 0,
  photo BLOB
);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  customer_id INTEGER NOT NULL REFERENCES Customers (id) ON DELETE CASCADE,
  total DECIMAL(12, 2) NOT NULL,
  what TEXT
);
CREATE INDEX orders_customer ON orders (customer_id);

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
INSERT INTO Customers (email, joined, vip, photo)
  SELECT 'c' || i || '@example.com', datetime('2024-01-01', '+' || i || ' hours'), i % 10 = 0, CASE WHEN i % 100 = 0 THEN x'00ff27' END FROM n;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO orders (customer_id, total, what)
  SELECT 1 + i % 1000, i / 100.0, CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN 'a	tab, a \ and ''quotes''' WHEN 2 THEN 'Grüße' ELSE '' END FROM n;

ALTER TABLE items
    DROP COLUMN line,
    DROP COLUMN original;

DROP TABLE refused_counts;
ALTER TABLE deliveries DROP COLUMN unsigned;

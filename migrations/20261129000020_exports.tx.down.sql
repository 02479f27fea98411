DROP TABLE comparison_pages;
DROP TABLE comparisons;
DROP TABLE export_chunks;
DROP TABLE exports;

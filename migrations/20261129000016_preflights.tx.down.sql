DROP TABLE preflight_lines;
DROP TABLE preflights;

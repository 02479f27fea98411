DROP TABLE search_backfill;
DROP TABLE search_buckets;
DROP TABLE search_words;
DROP TRIGGER results_to_search ON results;
DROP FUNCTION search_todo_add();
DROP TABLE search_todo;
ALTER TABLE results DROP COLUMN mark_reason;
ALTER TABLE results DROP COLUMN mark;

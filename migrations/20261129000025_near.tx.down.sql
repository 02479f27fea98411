DROP INDEX IF EXISTS search_words_far_idx;
ALTER TABLE search_words DROP COLUMN near;

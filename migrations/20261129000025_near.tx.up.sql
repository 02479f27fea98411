-- Which words of a result stand beside each other, as a signature: a search for
-- a phrase of common words, which nearly every page has somewhere, passes over
-- the others by it without unpacking what a page says. Ten bits for each pair,
-- two of them set; how it is made is in store/search_near.go.
-- NULL until the task that reads words has come to it: in an installation of ten
-- million results that goes on for hours behind other work, and as the rows grow
-- by a signature each, most of the table and its indexes are written once more.
-- The migration itself takes a moment: it keeps searches waiting for as long.
ALTER TABLE search_words ADD COLUMN near bytea;
-- It is looked at in place, beside the row, and random: packing wins nothing.
ALTER TABLE search_words ALTER COLUMN near SET STORAGE PLAIN;
ALTER TABLE search_words ALTER COLUMN near SET STATISTICS 0;

-- Where an item stands in the list that was submitted, as its preflight counts, and what its line held where the URL was
-- mended. Both are NULL where there was no list: a URL tried now, a crawl and its pages, and all items from before. The
-- columns take a moment, whatever the table holds; who reads or writes items waits for it.
ALTER TABLE items
    ADD COLUMN line integer,
    ADD COLUMN original text;

-- Full-text search over results, and pages that came back but look empty or
-- blocked.

-- The mark never changes an item's state. It is set as a result is stored, and
-- again when its words are read.
ALTER TABLE results ADD COLUMN mark text NOT NULL DEFAULT '' CHECK (mark IN ('', 'empty', 'blocked'));
ALTER TABLE results ADD COLUMN mark_reason text NOT NULL DEFAULT '';
CREATE INDEX results_marked_idx ON results (item_id) WHERE mark <> '';

-- Results whose words are still to be read, in the order they were stored. A
-- row per stored or replaced result, written by whatever stored it.
CREATE TABLE search_todo (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item_id bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- A trigger and not the storing statement itself: while one process after
-- another is brought up to this release, those of the last one store as well.
CREATE FUNCTION search_todo_add() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO search_todo (item_id) VALUES (NEW.item_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER results_to_search AFTER INSERT OR UPDATE OF version ON results
    FOR EACH ROW EXECUTE FUNCTION search_todo_add();

-- The words of each result. seq is the order of "newest first": the todo row's
-- own, or below zero, falling, for results from before there was search. tags
-- are what a search is narrowed by beside words: b:N the bucket of 512 in seq
-- order, n:N the batch, h:HOST. They share the index with the words, so that
-- the newest buckets are looked through without reading older postings.
CREATE TABLE search_words (
    item_id bigint PRIMARY KEY REFERENCES results (item_id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    version integer NOT NULL,
    stored_at timestamptz NOT NULL,
    tags text[] NOT NULL,
    words tsvector NOT NULL,
    trouble text NOT NULL DEFAULT '' -- Why the words could not be read.
);
ALTER TABLE search_words ALTER COLUMN words SET COMPRESSION lz4;
-- What waits outside the tree is read by every search: it must stay small.
CREATE INDEX search_words_idx ON search_words USING gin (tags, words) WITH (gin_pending_list_limit = 512);
ALTER TABLE search_words ALTER COLUMN words SET STATISTICS 0;

-- Which buckets there are, and the time that each spans at most.
CREATE TABLE search_buckets (
    bucket bigint PRIMARY KEY,
    oldest timestamptz NOT NULL,
    newest timestamptz NOT NULL
);

-- How far the results from before there was search have been gone through,
-- from the newest to the oldest.
CREATE TABLE search_backfill (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    at timestamptz NOT NULL,
    item_id bigint NOT NULL,
    seq bigint NOT NULL,
    done_at timestamptz
);
INSERT INTO search_backfill (at, item_id, seq) VALUES ('9999-12-31', 9223372036854775807, -1);

DROP TABLE gate_pauses;
DROP INDEX crawl_pages_parent_idx;
DROP TABLE sync_calls;

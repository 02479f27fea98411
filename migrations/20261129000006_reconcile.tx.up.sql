-- What a reconcile run found besides the lists: jobs of which the vendor's
-- delivery log says that nobody took their event, and held events whose job
-- is known by now.
ALTER TABLE reconcile_runs
    ADD COLUMN refused integer NOT NULL DEFAULT 0,
    ADD COLUMN held integer NOT NULL DEFAULT 0;

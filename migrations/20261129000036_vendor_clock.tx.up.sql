-- How far the vendor's clock was ahead, whenever that changed: a call whose answer was lost is looked for where the
-- vendor may have put it, also when its clock, or ours, was put right since.
CREATE TABLE vendor_clock (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    ahead_ms bigint NOT NULL
);

CREATE INDEX vendor_clock_at_idx ON vendor_clock (at);

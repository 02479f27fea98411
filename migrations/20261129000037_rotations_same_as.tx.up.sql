-- The older version of the webhook's secret that the vendor answered with again, when it made no new one.
ALTER TABLE rotations ADD COLUMN same_as integer;

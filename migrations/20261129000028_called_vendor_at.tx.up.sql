-- When a call was made by the vendor's clock: a lost answer is looked for by the vendor's times, and either clock may be
-- put right in between.
ALTER TABLE jobs ADD COLUMN called_vendor_at timestamptz;

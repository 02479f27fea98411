ALTER TABLE jobs DROP COLUMN called_vendor_at;

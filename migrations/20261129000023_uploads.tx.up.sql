-- Uploads are kept packed, several files together: upload is a ZIP archive with
-- the file that is read first, or an index of sitemaps, before the others. False:
-- it is one file as it came, from before this was so.
ALTER TABLE preflights ADD COLUMN packed boolean NOT NULL DEFAULT false;

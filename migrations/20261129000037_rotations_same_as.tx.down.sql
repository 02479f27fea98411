ALTER TABLE rotations DROP COLUMN same_as;

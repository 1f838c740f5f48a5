-- Mode and modification time of files, and directories that exist by themselves.
ALTER TABLE entry ADD COLUMN mode INTEGER;
ALTER TABLE entry ADD COLUMN mtime_ns INTEGER;
ALTER TABLE version ADD COLUMN mode INTEGER;
ALTER TABLE version ADD COLUMN mtime_ns INTEGER;

-- The audit tells through which key its author acted.
ALTER TABLE audit ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN key_name TEXT NOT NULL DEFAULT '';

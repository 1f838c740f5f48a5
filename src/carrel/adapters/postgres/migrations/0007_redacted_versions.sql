ALTER TABLE version ADD COLUMN redacted smallint NOT NULL DEFAULT 0;

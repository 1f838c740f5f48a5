ALTER TABLE version ADD COLUMN redacted smallint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION keep_versions_for_git() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('carrel.erases', true), '') <> 'on' AND EXISTS (
        SELECT FROM scope AS s
          JOIN record AS r ON r.tenant = s.tenant AND r.type = 'agent' AND r.id = s.name
         WHERE s.id = OLD.scope AND s.kind = 'agent'
           AND r.body::jsonb #> '{config,workspaceGit,enabled}' = 'true'::jsonb
    ) THEN
        RETURN NULL;
    END IF;
    RETURN OLD;
END $$;

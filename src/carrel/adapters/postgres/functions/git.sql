-- Trigger that keeps all versions of agents with git enabled: their repository is built from them.
-- Erasure deletes them nevertheless, and the repository is built again.
CREATE FUNCTION keep_versions_for_git() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER version_kept_for_git BEFORE DELETE ON version
    FOR EACH ROW EXECUTE FUNCTION keep_versions_for_git();

-- Large contents.

-- Complete an upload whose parts are all stored; false if some are not, after a failover or because
-- garbage collection deleted the upload. If the content exists, the upload is deleted.
CREATE FUNCTION finish_large_content(
    upload bigint, content_digest bytea, part_count bigint, now_ms bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        UPDATE large_content SET at = now_ms, in_trash = false WHERE digest = content_digest;
        IF FOUND THEN
            DELETE FROM large_content WHERE id = upload;
            RETURN true;
        END IF;
        BEGIN
            UPDATE large_content SET digest = content_digest, at = now_ms
             WHERE id = upload AND digest IS NULL
               AND part_count = (SELECT count(*) FROM content_part WHERE content = upload);
            RETURN FOUND;
        EXCEPTION WHEN unique_violation THEN
            NULL;  -- stored meanwhile by another upload
        END;
    END LOOP;
END $$;

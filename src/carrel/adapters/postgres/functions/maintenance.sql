-- Maintenance.

-- Delete versions of a scope beyond `max_versions` that no kept run sees; returns how many. The
-- scope is locked, so that no run starts on them meanwhile.
CREATE FUNCTION prune_versions(lock bigint, scope_id bigint, max_versions bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    deleted bigint;
BEGIN
    PERFORM acquire_locks(ARRAY[lock], ARRAY[true]);
    DELETE FROM version AS v USING entry AS e
     WHERE e.scope = scope_id AND v.scope = scope_id AND v.path = e.path
       AND v.version <= e.version - max_versions
       AND NOT EXISTS (
           SELECT FROM run_layer AS l
            WHERE l.scope = scope_id AND l.revision >= v.revision
              AND l.revision < (SELECT m.revision FROM version AS m
                                 WHERE m.scope = scope_id AND m.path = v.path
                                   AND m.version > v.version ORDER BY m.version LIMIT 1));
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END $$;

-- Delete those of these contents that are unreferenced; returns how many. A commit that is about to
-- refer to one holds its lock; such contents are skipped.
CREATE FUNCTION delete_contents(ids bigint[], locks bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    unlocked bigint[];
    deleted bigint;
BEGIN
    PERFORM acquire_locks('{}', '{}');
    unlocked = ARRAY(SELECT w.id FROM unnest(ids, locks) AS w (id, lock)
                      WHERE pg_try_advisory_xact_lock(w.lock));
    DELETE FROM content AS c
     WHERE c.id = ANY (unlocked)
       AND NOT EXISTS (SELECT FROM version AS v WHERE v.content = c.id)
       AND NOT EXISTS (SELECT FROM version AS v WHERE v.base = c.id);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    UPDATE counter SET value = greatest(value, (SELECT max(w.id) FROM unnest(unlocked) AS w (id)))
     WHERE name = 'content';
    RETURN deleted;
END $$;

-- Advance the id sequences past the restored ids.
CREATE FUNCTION advance_id_sequences() RETURNS void LANGUAGE sql AS $$
    SELECT setval('scope_id_seq', n) FROM (SELECT max(id) AS n FROM scope) AS x WHERE n > 0;
    SELECT setval('audit_id_seq', n) FROM (SELECT max(id) AS n FROM audit) AS x WHERE n > 0;
    SELECT setval('content_id_seq', n)
      FROM (SELECT greatest((SELECT max(id) FROM content),
                            (SELECT value FROM counter WHERE name = 'content')) AS n) AS x
     WHERE n > 0;
    SELECT setval('event_id_seq', n)
      FROM (SELECT max_event_id() AS n) AS x WHERE n > 0;
$$;

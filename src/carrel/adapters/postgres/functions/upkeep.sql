-- Maintenance.

-- Delete versions of a scope beyond `keep` that no kept run sees; returns how many. The scope is
-- locked, so that no run starts on them meanwhile.
CREATE FUNCTION prune_scope(lock bigint, of_scope bigint, keep bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM take_locks(ARRAY[lock], ARRAY[true]);
    DELETE FROM version AS v USING entry AS e
     WHERE e.scope = of_scope AND v.scope = of_scope AND v.path = e.path
       AND v.version <= e.version - keep
       AND NOT EXISTS (
           SELECT FROM run_layer AS l
            WHERE l.scope = of_scope AND l.revision >= v.revision
              AND l.revision < (SELECT m.revision FROM version AS m
                                 WHERE m.scope = of_scope AND m.path = v.path
                                   AND m.version > v.version ORDER BY m.version LIMIT 1));
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

-- Delete those of these contents that are unreferenced; returns how many. A commit that is about to
-- refer to one holds its lock; such contents are skipped.
CREATE FUNCTION drop_contents(ids bigint[], locks bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    free bigint[];
    gone bigint;
BEGIN
    PERFORM take_locks('{}', '{}');
    free = ARRAY(SELECT w.id FROM unnest(ids, locks) AS w (id, lock)
                  WHERE pg_try_advisory_xact_lock(w.lock));
    DELETE FROM content AS c
     WHERE c.id = ANY (free)
       AND NOT EXISTS (SELECT FROM version AS v WHERE v.content = c.id)
       AND NOT EXISTS (SELECT FROM version AS v WHERE v.base = c.id);
    GET DIAGNOSTICS gone = ROW_COUNT;
    UPDATE counter SET value = greatest(value, (SELECT max(w.id) FROM unnest(free) AS w (id)))
     WHERE name = 'content';
    RETURN gone;
END $$;

-- Continue the sequences after the loaded ids.
CREATE FUNCTION continue_numbers() RETURNS void LANGUAGE sql AS $$
    SELECT setval('scope_id_seq', n) FROM (SELECT max(id) AS n FROM scope) AS x WHERE n > 0;
    SELECT setval('audit_id_seq', n) FROM (SELECT max(id) AS n FROM audit) AS x WHERE n > 0;
    SELECT setval('content_id_seq', n)
      FROM (SELECT greatest((SELECT max(id) FROM content),
                            (SELECT value FROM counter WHERE name = 'content')) AS n) AS x WHERE n > 0;
    SELECT setval('event_id_seq', n)
      FROM (SELECT greatest_event() AS n) AS x WHERE n > 0;
$$;

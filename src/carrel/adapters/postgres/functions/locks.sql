-- Waiting for others. Everything that writes runs as READ COMMITTED and takes its names first: a
-- statement sees what was committed before it began, so whatever is read after take_locks() is up to
-- date, and stays so for the names that were taken.

-- Wait for names: `mine` for oneself, `ours` shared with others. Every writer takes all its names in
-- one call and in one order, so no two can wait for each other. No transaction id is given out while
-- waiting; hence the events of one scope, or of one run, are ordered as they were made.
-- Names are hashed: where two collide, somebody waits who had not to. PostgreSQL has room for some
-- thousands of locks, so whoever wants very many takes everything instead.
CREATE FUNCTION take_locks(mine text[], ours text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(mine) + cardinality(ours) > 1000 THEN
        PERFORM pg_advisory_xact_lock(0);
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(0);
    PERFORM CASE WHEN l.alone THEN pg_advisory_xact_lock(l.key)
                 ELSE pg_advisory_xact_lock_shared(l.key) END
       FROM (SELECT hashtextextended(n.name, 0) AS key, bool_or(n.alone) AS alone
               FROM (SELECT unnest(mine) AS name, true AS alone
                     UNION ALL SELECT unnest(ours), false) AS n
              GROUP BY 1 ORDER BY 1) AS l;
END $$;

-- Wait for everybody, and keep everybody waiting.
CREATE FUNCTION take_everything() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(0)
$$;

-- Advisory locks. Writers run as READ COMMITTED and lock first. A statement sees what was committed
-- before it began, so rows read after acquire_locks() are current, and locked ones stay so.

-- Acquire locks in the given order, exclusive or shared. Every writer acquires all its locks in
-- one call in ascending order, so there are no deadlocks. A transaction has no id while it waits,
-- so the events of a scope or run are in commit order. Numbers are hashes of names; a collision
-- only causes an unneeded wait. PostgreSQL supports some thousands of locks, so above 1,000 the
-- global lock is used.
CREATE FUNCTION acquire_locks(locks bigint[], exclusive boolean[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(locks) > 1000 THEN
        PERFORM pg_advisory_xact_lock(0);
        RETURN;
    END IF;
    -- Trying first costs a tenth of a blocking call; it fails if another session already waits.
    IF NOT pg_try_advisory_xact_lock_shared(0) THEN
        PERFORM pg_advisory_xact_lock_shared(0);
    END IF;
    FOR i IN 1 .. cardinality(locks) LOOP
        IF exclusive[i] THEN
            IF NOT pg_try_advisory_xact_lock(locks[i]) THEN
                PERFORM pg_advisory_xact_lock(locks[i]);
            END IF;
        ELSIF NOT pg_try_advisory_xact_lock_shared(locks[i]) THEN
            PERFORM pg_advisory_xact_lock_shared(locks[i]);
        END IF;
    END LOOP;
END $$;

-- Acquire the global lock exclusively: waits for all writers and blocks new ones.
CREATE FUNCTION acquire_global_lock() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(0)
$$;

-- Waiting for others. Everything that writes runs as READ COMMITTED and takes its locks first: a
-- statement sees what was committed before it began, so whatever is read after take_locks() is up to
-- date, and stays so for what was locked.

-- Take locks in the order given, each for oneself or shared. Every writer takes all of its locks in
-- one call, by rising number, so no two can wait for each other. No transaction id is given out while
-- waiting; hence the events of one scope, or of one run, are ordered as they were made.
-- Numbers are hashes of names: where two collide, somebody waits who had not to. PostgreSQL has room
-- for some thousands of locks, so whoever wants very many takes everything instead.
CREATE FUNCTION take_locks(locks bigint[], alone boolean[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(locks) > 1000 THEN
        PERFORM pg_advisory_xact_lock(0);
        RETURN;
    END IF;
    -- Trying costs a tenth of a statement that waits, and fails if somebody is waiting already.
    IF NOT pg_try_advisory_xact_lock_shared(0) THEN
        PERFORM pg_advisory_xact_lock_shared(0);
    END IF;
    FOR i IN 1 .. cardinality(locks) LOOP
        IF alone[i] THEN
            IF NOT pg_try_advisory_xact_lock(locks[i]) THEN
                PERFORM pg_advisory_xact_lock(locks[i]);
            END IF;
        ELSIF NOT pg_try_advisory_xact_lock_shared(locks[i]) THEN
            PERFORM pg_advisory_xact_lock_shared(locks[i]);
        END IF;
    END LOOP;
END $$;

-- Wait for everybody, and keep everybody waiting.
CREATE FUNCTION take_everything() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(0)
$$;

-- Reading the event log without gaps.

-- First transaction that may still add an event: all events of earlier ones are visible.
--
-- At most the oldest transaction in progress. Unrelated transactions may run for hours, even in
-- other databases. If events come after one of them, pg_locks shows which transactions write
-- events: writers lock the table before they get an id. A transaction absent from pg_locks has just
-- begun or just ended; then the check is repeated.
CREATE FUNCTION event_horizon() RETURNS xid8 LANGUAGE plpgsql AS $$
DECLARE
    seen pg_snapshot;
    first_writer xid8;
    all_known boolean;
BEGIN
    FOR attempt IN 1 .. 5 LOOP
        seen = pg_current_snapshot();
        IF pg_snapshot_xmin(seen) = pg_snapshot_xmax(seen)
           OR NOT EXISTS (SELECT FROM event AS e WHERE e.xid >= pg_snapshot_xmin(seen)) THEN
            EXIT;
        END IF;
        WITH held AS MATERIALIZED (
            SELECT l.locktype, l.transactionid, l.virtualtransaction, l.mode,
                   l.relation = 'event'::regclass AND l.database = d.oid AS of_events
              FROM pg_locks AS l, pg_database AS d WHERE l.granted AND d.datname = current_database()
        ), under_way AS (
            SELECT r.xid, h.virtualtransaction FROM pg_snapshot_xip(seen) AS r (xid)
              LEFT JOIN held AS h ON h.locktype = 'transactionid' AND h.transactionid = r.xid::xid
        )
        SELECT bool_and(u.virtualtransaction IS NOT NULL),
               (SELECT w.xid FROM under_way AS w JOIN held AS h USING (virtualtransaction)
                 WHERE h.of_events AND h.mode <> 'AccessShareLock' ORDER BY w.xid LIMIT 1)
          INTO all_known, first_writer FROM under_way AS u;
        IF all_known THEN
            RETURN coalesce(first_writer, pg_snapshot_xmax(seen));
        END IF;
    END LOOP;
    RETURN pg_snapshot_xmin(seen);
END $$;

-- Events after a cursor, in order. NULL filters match everything; a NULL tenant means all tenants.
CREATE FUNCTION events_after(
    past_xid xid8, past_id bigint, of_tenant text, of_run text, of_types text[],
    of_kinds text[], of_names text[], most bigint
) RETURNS TABLE (
    xid text, id bigint, tenant text, kind text, name text, run text, sequence bigint, type text,
    payload text, at bigint
) LANGUAGE plpgsql AS $$
DECLARE
    horizon xid8 = event_horizon();
    scopes bigint[];
BEGIN
    -- Restored events have no transaction here, so they come first, by id. A cursor from before the
    -- restore has an id among theirs, or a transaction id in the future.
    IF past_xid >= horizon
       OR past_id <= (SELECT c.value FROM counter AS c WHERE c.name = 'loaded') THEN
        past_xid = '0';
    END IF;
    IF of_names IS NOT NULL THEN
        scopes = ARRAY(SELECT s.id FROM unnest(of_kinds, of_names) AS w (kind, name)
                         JOIN scope AS s ON s.tenant = of_tenant AND s.kind = w.kind
                                        AND s.name = w.name);
    END IF;
    IF of_tenant IS NULL THEN
        RETURN QUERY
        SELECT e.xid::text, e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload, e.at
          FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
         WHERE (e.xid, e.id) > (past_xid, past_id) AND e.xid < horizon
         ORDER BY e.xid, e.id LIMIT most;
    ELSIF of_run IS NULL THEN
        RETURN QUERY
        SELECT e.xid::text, e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload, e.at
          FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
         WHERE e.tenant = of_tenant AND (e.xid, e.id) > (past_xid, past_id) AND e.xid < horizon
           AND (of_types IS NULL OR e.type = ANY (of_types))
           AND (scopes IS NULL OR e.scope = ANY (scopes))
         ORDER BY e.xid, e.id LIMIT most;
    ELSE
        RETURN QUERY
        SELECT e.xid::text, e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload, e.at
          FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
         WHERE e.run = of_run AND e.tenant = of_tenant
           AND (e.xid, e.id) > (past_xid, past_id) AND e.xid < horizon
           AND (of_types IS NULL OR e.type = ANY (of_types))
           AND (scopes IS NULL OR e.scope = ANY (scopes))
         ORDER BY e.xid, e.id LIMIT most;
    END IF;
END $$;

-- Greatest event id ever used, including deleted events.
CREATE FUNCTION greatest_event() RETURNS bigint LANGUAGE sql AS $$
    SELECT greatest((SELECT max(id) FROM event), (SELECT value FROM counter WHERE name = 'event'))
$$;

-- The delivery cursor as an event id, which is valid in any store.
CREATE FUNCTION portable_mark(cursor text) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(
        (SELECT min(e.id) - 1 FROM event AS e
          WHERE (e.xid, e.id) > (split_part(cursor, '.', 1)::xid8, split_part(cursor, '.', 2)::bigint)),
        greatest_event())
$$;

-- Treat all events as restored: after a restore, or when the database was copied to another server,
-- transaction ids start again.
CREATE FUNCTION rebase_events() RETURNS void LANGUAGE sql AS $$
    UPDATE mark SET cursor = '0.' || portable_mark(cursor);
    UPDATE event SET xid = '0' WHERE xid <> '0';
    UPDATE counter SET value = greatest_event() WHERE name = 'loaded';
$$;

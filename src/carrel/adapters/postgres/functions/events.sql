-- Reading the event log without gaps.

-- First transaction that may still add an event: all events of earlier ones are visible.
--
-- At most the oldest transaction in progress. Unrelated transactions may run for hours, even in
-- other databases. If events come after one of them, pg_locks shows which transactions write
-- events: writers lock the table before they get an id. A transaction absent from pg_locks has just
-- begun or just ended; then the check is repeated.
CREATE FUNCTION event_horizon() RETURNS xid8 LANGUAGE plpgsql AS $$
DECLARE
    snapshot pg_snapshot;
    first_writer xid8;
    all_in_locks boolean;
BEGIN
    FOR attempt IN 1 .. 5 LOOP
        snapshot = pg_current_snapshot();
        IF pg_snapshot_xmin(snapshot) = pg_snapshot_xmax(snapshot)
           OR NOT EXISTS (SELECT FROM event AS e WHERE e.xid >= pg_snapshot_xmin(snapshot)) THEN
            EXIT;
        END IF;
        WITH locks AS MATERIALIZED (
            SELECT l.locktype, l.transactionid, l.virtualtransaction, l.mode,
                   l.relation = 'event'::regclass AND l.database = d.oid AS on_events
              FROM pg_locks AS l, pg_database AS d
             WHERE l.granted AND d.datname = current_database()
        ), in_progress AS (
            SELECT r.xid, l.virtualtransaction FROM pg_snapshot_xip(snapshot) AS r (xid)
              LEFT JOIN locks AS l ON l.locktype = 'transactionid' AND l.transactionid = r.xid::xid
        )
        SELECT bool_and(u.virtualtransaction IS NOT NULL),
               (SELECT w.xid FROM in_progress AS w JOIN locks AS l USING (virtualtransaction)
                 WHERE l.on_events AND l.mode <> 'AccessShareLock' ORDER BY w.xid LIMIT 1)
          INTO all_in_locks, first_writer FROM in_progress AS u;
        IF all_in_locks THEN
            RETURN coalesce(first_writer, pg_snapshot_xmax(snapshot));
        END IF;
    END LOOP;
    RETURN pg_snapshot_xmin(snapshot);
END $$;

-- Events after a cursor, in order. NULL filters match everything; a NULL tenant means all tenants.
CREATE FUNCTION events_after(
    after_xid xid8, after_id bigint, filter_tenant text, filter_run text, filter_types text[],
    scope_kinds text[], scope_names text[], max_rows bigint
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
    IF after_xid >= horizon
       OR after_id <= (SELECT c.value FROM counter AS c WHERE c.name = 'restored_event') THEN
        after_xid = '0';
    END IF;
    IF scope_names IS NOT NULL THEN
        scopes = ARRAY(SELECT s.id FROM unnest(scope_kinds, scope_names) AS w (kind, name)
                         JOIN scope AS s ON s.tenant = filter_tenant AND s.kind = w.kind
                                        AND s.name = w.name);
    END IF;
    IF filter_tenant IS NULL THEN
        RETURN QUERY
        SELECT e.xid::text, e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload,
               e.at
          FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
         WHERE (e.xid, e.id) > (after_xid, after_id) AND e.xid < horizon
         ORDER BY e.xid, e.id LIMIT max_rows;
    ELSIF filter_run IS NULL THEN
        RETURN QUERY
        SELECT e.xid::text, e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload,
               e.at
          FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
         WHERE e.tenant = filter_tenant
           AND (e.xid, e.id) > (after_xid, after_id) AND e.xid < horizon
           AND (filter_types IS NULL OR e.type = ANY (filter_types))
           AND (scopes IS NULL OR e.scope = ANY (scopes))
         ORDER BY e.xid, e.id LIMIT max_rows;
    ELSE
        RETURN QUERY
        SELECT e.xid::text, e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload,
               e.at
          FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
         WHERE e.run = filter_run AND e.tenant = filter_tenant
           AND (e.xid, e.id) > (after_xid, after_id) AND e.xid < horizon
           AND (filter_types IS NULL OR e.type = ANY (filter_types))
           AND (scopes IS NULL OR e.scope = ANY (scopes))
         ORDER BY e.xid, e.id LIMIT max_rows;
    END IF;
END $$;

-- Greatest event id ever used, including deleted events.
CREATE FUNCTION max_event_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT greatest((SELECT max(id) FROM event), (SELECT value FROM counter WHERE name = 'event'))
$$;

-- The delivery cursor as an event id, which is valid in any store.
CREATE FUNCTION delivery_cursor_event_id(cursor text) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(
        (SELECT min(e.id) - 1 FROM event AS e
          WHERE (e.xid, e.id) > (split_part(cursor, '.', 1)::xid8,
                                 split_part(cursor, '.', 2)::bigint)),
        max_event_id())
$$;

-- Treat all events as restored: after a restore, or when the database was copied to another server,
-- transaction ids start again.
CREATE FUNCTION reset_event_xids() RETURNS void LANGUAGE sql AS $$
    UPDATE delivery_cursor SET cursor = '0.' || delivery_cursor_event_id(cursor);
    UPDATE event SET xid = '0' WHERE xid <> '0';
    UPDATE counter SET value = max_event_id() WHERE name = 'restored_event';
$$;

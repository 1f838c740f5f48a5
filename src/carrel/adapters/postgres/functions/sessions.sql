-- Sessions.

-- Append entries (e) to sessions. Each addition (a) names a session and the count of its entries.
-- Returns the updated sessions by index of the addition; absent and closed sessions are skipped.
CREATE FUNCTION append_session_entries(
    a_tenant text[], a_session text[], a_agent text[], a_count integer[],
    a_endpoint text[], a_key text[],
    e_at bigint[], e_role text[], e_content bytea[], e_message text[], e_plugin text[],
    e_sender text[], e_terms text[]
) RETURNS TABLE (addition integer, updated session) LANGUAGE plpgsql AS $$
DECLARE
    a record;
BEGIN
    PERFORM acquire_locks('{}', '{}');
    FOR a IN
        SELECT x.*, (sum(x.count) OVER (ORDER BY x.n) - x.count)::integer AS skip
          FROM unnest(a_tenant, a_session, a_agent, a_count, a_endpoint, a_key)
               WITH ORDINALITY AS x (tenant, session, agent, count, endpoint, key, n)
         ORDER BY x.tenant, x.session, x.n
    LOOP
        UPDATE session AS s
           SET entry_count = s.entry_count + a.count,
               last_entry_at = greatest(
                   s.last_entry_at,
                   (SELECT max(at) FROM unnest(e_at[a.skip + 1 : a.skip + a.count]) AS w (at)))
         WHERE s.tenant = a.tenant AND s.id = a.session AND s.agent = a.agent AND s.ended_at IS NULL
        RETURNING s.* INTO updated;
        CONTINUE WHEN NOT FOUND;
        INSERT INTO session_entry (tenant, session, sequence, at, role, content, message, plugin,
                                   sender)
        SELECT a.tenant, a.session, updated.entry_count - a.count + i, e_at[a.skip + i],
               e_role[a.skip + i], e_content[a.skip + i], e_message[a.skip + i],
               e_plugin[a.skip + i], e_sender[a.skip + i]
          FROM generate_series(1, a.count) AS i;
        INSERT INTO session_entry_text (tenant, session, sequence, terms)
        SELECT a.tenant, a.session, updated.entry_count - a.count + i, e_terms[a.skip + i]::tsvector
          FROM generate_series(1, a.count) AS i;
        UPDATE idempotency_key AS k
           SET versions = (SELECT jsonb_agg(updated.entry_count - a.count + i ORDER BY i)::text
                             FROM generate_series(1, a.count) AS i)
         WHERE k.tenant = a.tenant AND k.endpoint = a.endpoint AND k.key = a.key;
        addition = a.n;
        RETURN NEXT;
    END LOOP;
END $$;

-- Delete sessions that still have the given number of entries; returns how many.
CREATE FUNCTION delete_sessions(d_tenant text[], d_id text[], d_entry_count bigint[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    d record;
    deleted bigint = 0;
BEGIN
    PERFORM acquire_locks('{}', '{}');
    FOR d IN
        SELECT * FROM unnest(d_tenant, d_id, d_entry_count) AS x (tenant, id, entry_count)
         ORDER BY 1, 2
    LOOP
        DELETE FROM session AS s
         WHERE s.tenant = d.tenant AND s.id = d.id AND s.entry_count = d.entry_count;
        CONTINUE WHEN NOT FOUND;
        DELETE FROM session_entry AS e WHERE e.tenant = d.tenant AND e.session = d.id;
        DELETE FROM session_entry_text AS t WHERE t.tenant = d.tenant AND t.session = d.id;
        deleted = deleted + 1;
    END LOOP;
    RETURN deleted;
END $$;

-- Sessions.

-- Append entries (e) to sessions. Each addition (a) names a session and the count of its entries.
-- An entry without a run gets that of its session. Returns the updated sessions by index of the
-- addition; absent and closed sessions are skipped. Where the last entry is not the expected one,
-- nothing is appended and its number is returned.
CREATE FUNCTION append_session_entries(
    a_tenant text[], a_session text[], a_agent text[], a_count integer[],
    a_endpoint text[], a_key text[], a_after bigint[],
    e_at bigint[], e_role text[], e_content bytea[], e_message text[], e_plugin text[],
    e_sender text[], e_item text[], e_run text[], e_terms text[]
) RETURNS TABLE (addition integer, updated session, changed_last bigint) LANGUAGE plpgsql AS $$
DECLARE
    a record;
BEGIN
    PERFORM acquire_locks('{}', '{}');
    FOR a IN
        SELECT x.*, (sum(x.count) OVER (ORDER BY x.n) - x.count)::integer AS skip
          FROM unnest(a_tenant, a_session, a_agent, a_count, a_endpoint, a_key, a_after)
               WITH ORDINALITY AS x (tenant, session, agent, count, endpoint, key, after, n)
         ORDER BY x.tenant, x.agent, x.session, x.n
    LOOP
        addition = a.n;
        changed_last = NULL;
        IF a.after IS NOT NULL THEN
            SELECT s.* INTO updated FROM session AS s
             WHERE s.tenant = a.tenant AND s.id = a.session AND s.agent = a.agent
               AND s.ended_at IS NULL FOR UPDATE;
            CONTINUE WHEN NOT FOUND;
            SELECT coalesce(max(e.sequence), 0) INTO changed_last FROM session_entry AS e
             WHERE e.tenant = a.tenant AND e.agent = a.agent AND e.session = a.session;
            IF changed_last <> a.after THEN
                RETURN NEXT;
                CONTINUE;
            END IF;
            changed_last = NULL;
        END IF;
        UPDATE session AS s
           SET entry_count = s.entry_count + a.count, last_sequence = s.last_sequence + a.count,
               last_entry_at = greatest(
                   s.last_entry_at,
                   (SELECT max(at) FROM unnest(e_at[a.skip + 1 : a.skip + a.count]) AS w (at)))
         WHERE s.tenant = a.tenant AND s.id = a.session AND s.agent = a.agent AND s.ended_at IS NULL
        RETURNING s.* INTO updated;
        CONTINUE WHEN NOT FOUND;
        INSERT INTO session_entry (tenant, agent, session, sequence, at, role, content, message,
                                   plugin, sender, item, run)
        SELECT a.tenant, a.agent, a.session, updated.last_sequence - a.count + i,
               e_at[a.skip + i], e_role[a.skip + i], e_content[a.skip + i], e_message[a.skip + i],
               e_plugin[a.skip + i], e_sender[a.skip + i], e_item[a.skip + i],
               coalesce(e_run[a.skip + i], updated.run)
          FROM generate_series(1, a.count) AS i;
        INSERT INTO session_entry_text (tenant, agent, session, sequence, terms)
        SELECT a.tenant, a.agent, a.session, updated.last_sequence - a.count + i,
               e_terms[a.skip + i]::tsvector
          FROM generate_series(1, a.count) AS i;
        UPDATE idempotency_key AS k
           SET versions = (SELECT jsonb_agg(updated.last_sequence - a.count + i ORDER BY i)::text
                             FROM generate_series(1, a.count) AS i)
         WHERE k.tenant = a.tenant AND k.endpoint = a.endpoint AND k.key = a.key;
        RETURN NEXT;
    END LOOP;
END $$;

-- Remove the last entry of each session, or all of them. Returns the sessions by index of the
-- removal, with the entry that was last; absent and closed sessions are skipped.
CREATE FUNCTION remove_session_entries(
    r_tenant text[], r_session text[], r_agent text[], r_at bigint[], r_is_complete boolean[],
    r_endpoint text[], r_key text[]
) RETURNS TABLE (removal integer, updated session, number bigint, at bigint, role text,
                 content bytea, message text, plugin text, sender text, item text, run text)
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    removed bigint;
BEGIN
    PERFORM acquire_locks('{}', '{}');
    FOR r IN
        SELECT * FROM unnest(r_tenant, r_session, r_agent, r_at, r_is_complete, r_endpoint, r_key)
               WITH ORDINALITY AS x (tenant, session, agent, at, is_complete, endpoint, key, n)
         ORDER BY x.tenant, x.agent, x.session, x.n
    LOOP
        SELECT s.* INTO updated FROM session AS s
         WHERE s.tenant = r.tenant AND s.id = r.session AND s.agent = r.agent
           AND s.ended_at IS NULL FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        SELECT e.sequence, e.at, e.role, e.content, e.message, e.plugin, e.sender, e.item, e.run
          INTO number, at, role, content, message, plugin, sender, item, run
          FROM session_entry AS e
         WHERE e.tenant = r.tenant AND e.agent = r.agent AND e.session = r.session
         ORDER BY e.sequence DESC LIMIT 1;
        IF FOUND THEN
            DELETE FROM session_entry AS e
             WHERE e.tenant = r.tenant AND e.agent = r.agent AND e.session = r.session
               AND (r.is_complete OR e.sequence = number);
            GET DIAGNOSTICS removed = ROW_COUNT;
            DELETE FROM session_entry_text AS t
             WHERE t.tenant = r.tenant AND t.agent = r.agent AND t.session = r.session
               AND (r.is_complete OR t.sequence = number);
            UPDATE session AS s
               SET entry_count = s.entry_count - removed,
                   last_entry_at = greatest(s.last_entry_at, r.at)
             WHERE s.tenant = r.tenant AND s.id = r.session AND s.agent = r.agent
            RETURNING s.* INTO updated;
        END IF;
        UPDATE idempotency_key AS k SET versions = jsonb_build_array(coalesce(number, 0))::text
         WHERE k.tenant = r.tenant AND k.endpoint = r.endpoint AND k.key = r.key;
        removal = r.n;
        RETURN NEXT;
    END LOOP;
END $$;

-- Delete sessions that still have the given entries, and unlink their runs; returns how many.
CREATE FUNCTION delete_sessions(
    d_tenant text[], d_agent text[], d_id text[], d_last_sequence bigint[], d_entry_count bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    d record;
    deleted bigint = 0;
BEGIN
    PERFORM acquire_locks('{}', '{}');
    FOR d IN
        SELECT * FROM unnest(d_tenant, d_agent, d_id, d_last_sequence, d_entry_count)
            AS x (tenant, agent, id, last_sequence, entry_count)
         ORDER BY 1, 2, 3
    LOOP
        DELETE FROM session AS s
         WHERE s.tenant = d.tenant AND s.agent = d.agent AND s.id = d.id
           AND s.last_sequence = d.last_sequence AND s.entry_count = d.entry_count;
        CONTINUE WHEN NOT FOUND;
        DELETE FROM session_entry AS e
         WHERE e.tenant = d.tenant AND e.agent = d.agent AND e.session = d.id;
        DELETE FROM session_entry_text AS t
         WHERE t.tenant = d.tenant AND t.agent = d.agent AND t.session = d.id;
        UPDATE run AS r SET session = NULL
          FROM scope AS f
         WHERE f.tenant = d.tenant AND f.kind = 'agent' AND f.name = d.agent
           AND r.scope = f.id AND r.session = d.id;
        deleted = deleted + 1;
    END LOOP;
    RETURN deleted;
END $$;

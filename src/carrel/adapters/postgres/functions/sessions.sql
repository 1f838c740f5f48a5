-- Sessions.

-- Append entries (u) to sessions (a), each with a count of entries, numbered after its last;
-- returns the changed sessions by index. Absent and closed sessions are skipped.
CREATE FUNCTION append_utterances(
    a_tenant text[], a_session text[], a_agent text[], a_count integer[],
    a_endpoint text[], a_key text[],
    u_at bigint[], u_role text[], u_content bytea[], u_message text[], u_plugin text[],
    u_sender text[], u_words text[]
) RETURNS TABLE (place integer, became session) LANGUAGE plpgsql AS $$
DECLARE
    a record;
BEGIN
    PERFORM take_locks('{}', '{}');
    FOR a IN
        SELECT x.*, (sum(x.count) OVER (ORDER BY x.n) - x.count)::integer AS skip
          FROM unnest(a_tenant, a_session, a_agent, a_count, a_endpoint, a_key)
               WITH ORDINALITY AS x (tenant, session, agent, count, endpoint, key, n)
         ORDER BY x.tenant, x.session, x.n
    LOOP
        UPDATE session AS s
           SET entries = s.entries + a.count,
               last = greatest(s.last, (SELECT max(at) FROM unnest(
                                            u_at[a.skip + 1 : a.skip + a.count]) AS w (at)))
         WHERE s.tenant = a.tenant AND s.id = a.session AND s.agent = a.agent AND s.ended IS NULL
        RETURNING s.* INTO became;
        CONTINUE WHEN NOT FOUND;
        INSERT INTO utterance (tenant, session, number, at, role, content, message, plugin, sender)
        SELECT a.tenant, a.session, became.entries - a.count + i, u_at[a.skip + i],
               u_role[a.skip + i], u_content[a.skip + i], u_message[a.skip + i],
               u_plugin[a.skip + i], u_sender[a.skip + i]
          FROM generate_series(1, a.count) AS i;
        INSERT INTO utterance_text (tenant, session, number, words)
        SELECT a.tenant, a.session, became.entries - a.count + i, u_words[a.skip + i]::tsvector
          FROM generate_series(1, a.count) AS i;
        UPDATE receipt AS r
           SET versions = (SELECT jsonb_agg(became.entries - a.count + i ORDER BY i)::text
                             FROM generate_series(1, a.count) AS i)
         WHERE r.tenant = a.tenant AND r.endpoint = a.endpoint AND r.key = a.key;
        place = a.n;
        RETURN NEXT;
    END LOOP;
END $$;

-- Delete sessions that still have the given number of entries; returns how many.
CREATE FUNCTION drop_sessions(d_tenant text[], d_id text[], d_entries bigint[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    d record;
    gone bigint = 0;
BEGIN
    PERFORM take_locks('{}', '{}');
    FOR d IN
        SELECT * FROM unnest(d_tenant, d_id, d_entries) AS x (tenant, id, entries) ORDER BY 1, 2
    LOOP
        DELETE FROM session AS s WHERE s.tenant = d.tenant AND s.id = d.id AND s.entries = d.entries;
        CONTINUE WHEN NOT FOUND;
        DELETE FROM utterance AS u WHERE u.tenant = d.tenant AND u.session = d.id;
        DELETE FROM utterance_text AS t WHERE t.tenant = d.tenant AND t.session = d.id;
        gone = gone + 1;
    END LOOP;
    RETURN gone;
END $$;

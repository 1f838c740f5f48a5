-- Webhook deliveries.

-- Add deliveries and advance the cursor; false if the cursor is not the expected one.
CREATE FUNCTION enqueue_deliveries(
    expected_cursor text, new_cursor text,
    d_id text[], d_tenant text[], d_webhook text[], d_type text[], d_body bytea[], d_state text[],
    d_created_at bigint[], d_due_at bigint[], d_attempts integer[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF expected_cursor IS NULL THEN
        INSERT INTO delivery_cursor (name, cursor) VALUES ('deliveries', new_cursor)
        ON CONFLICT DO NOTHING;
    ELSE
        UPDATE delivery_cursor SET cursor = new_cursor
         WHERE name = 'deliveries' AND cursor = expected_cursor;
    END IF;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO delivery (id, tenant, webhook, type, body, state, created_at, due_at, attempts)
    SELECT * FROM unnest(d_id, d_tenant, d_webhook, d_type, d_body, d_state, d_created_at, d_due_at,
                         d_attempts);
    RETURN true;
END $$;

-- Update deliveries and add an attempt to each. Rows are locked in order, so that concurrent
-- callers neither deadlock nor use a position twice.
CREATE FUNCTION record_attempts(
    d_id text[], d_state text[], d_due_at bigint[], d_attempts integer[],
    a_at bigint[], a_status integer[], a_problem text[], a_elapsed_ms bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM delivery AS d WHERE d.id = ANY (d_id) ORDER BY d.id FOR UPDATE;
    UPDATE delivery AS d SET state = n.state, due_at = n.due_at, attempts = n.attempts
      FROM unnest(d_id, d_state, d_due_at, d_attempts) AS n (id, state, due_at, attempts)
     WHERE d.id = n.id;
    INSERT INTO attempt (delivery, position, at, status, problem, elapsed_ms)
    SELECT n.id, coalesce((SELECT max(a.position) FROM attempt AS a WHERE a.delivery = n.id), 0)
                 + row_number() OVER (PARTITION BY n.id ORDER BY n.n),
           n.at, n.status, n.problem, n.elapsed_ms
      FROM unnest(d_id, a_at, a_status, a_problem, a_elapsed_ms) WITH ORDINALITY
        AS n (id, at, status, problem, elapsed_ms, n)
     WHERE EXISTS (SELECT FROM delivery AS d WHERE d.id = n.id);
END $$;

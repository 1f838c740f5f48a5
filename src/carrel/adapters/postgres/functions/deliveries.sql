-- Webhook deliveries.

-- Add deliveries and advance the cursor; false if the cursor has moved meanwhile.
CREATE FUNCTION enqueue_deliveries(
    was text, new_mark text,
    d_id text[], d_tenant text[], d_webhook text[], d_type text[], d_body bytea[], d_state text[],
    d_created bigint[], d_due bigint[], d_tries integer[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF was IS NULL THEN
        INSERT INTO mark (name, cursor) VALUES ('deliveries', new_mark) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE mark SET cursor = new_mark WHERE name = 'deliveries' AND cursor = was;
    END IF;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO delivery (id, tenant, webhook, type, body, state, created, due, tries)
    SELECT * FROM unnest(d_id, d_tenant, d_webhook, d_type, d_body, d_state, d_created, d_due, d_tries);
    RETURN true;
END $$;

-- Update deliveries and add an attempt to each. Rows are locked in order, so that concurrent
-- callers neither deadlock nor use an attempt number twice.
CREATE FUNCTION settle_deliveries(
    d_id text[], d_state text[], d_due bigint[], d_tries integer[],
    a_at bigint[], a_status integer[], a_problem text[], a_took bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM delivery AS d WHERE d.id = ANY (d_id) ORDER BY d.id FOR UPDATE;
    UPDATE delivery AS d SET state = n.state, due = n.due, tries = n.tries
      FROM unnest(d_id, d_state, d_due, d_tries) AS n (id, state, due, tries) WHERE d.id = n.id;
    INSERT INTO attempt (delivery, place, at, status, problem, took)
    SELECT n.id, coalesce((SELECT max(a.place) FROM attempt AS a WHERE a.delivery = n.id), 0)
                 + row_number() OVER (PARTITION BY n.id ORDER BY n.n), n.at, n.status, n.problem, n.took
      FROM unnest(d_id, a_at, a_status, a_problem, a_took) WITH ORDINALITY
        AS n (id, at, status, problem, took, n)
     WHERE EXISTS (SELECT FROM delivery AS d WHERE d.id = n.id);
END $$;

-- Runs.

-- Insert runs (r) with their layers (l). Layers without a revision are frozen at the current one of
-- their scope (s); returns those revisions. One statement reads them, so that the snapshot never
-- contains half a commit. Shared locks on the scopes keep commits from pruning versions between
-- reading a revision and storing it.
CREATE FUNCTION start_runs(
    locks bigint[],
    s_tenant text[], s_kind text[], s_name text[],
    r_id text[], r_tenant text[], r_scope integer[], r_workflow text[], r_mode text[],
    r_status text[], r_author text[], r_started_at bigint[], r_ended_at bigint[],
    r_parent text[], r_replay_of text[], r_snapshot_kept integer[], r_variables text[],
    r_payload text[], r_session text[], r_reported_at bigint[],
    l_run text[], l_position integer[], l_scope integer[], l_revision bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    s_id bigint[];
    s_revision bigint[];
BEGIN
    PERFORM acquire_locks(locks, array_fill(false, ARRAY[cardinality(locks)]));
    LOCK TABLE event IN ROW EXCLUSIVE MODE;
    INSERT INTO scope (tenant, kind, name, revision, files, size)
    SELECT a.tenant, a.kind, a.name, 0, 0, 0 FROM unnest(s_tenant, s_kind, s_name)
        AS a (tenant, kind, name)
     WHERE NOT EXISTS (SELECT FROM scope AS f WHERE f.tenant = a.tenant AND f.kind = a.kind
                                                AND f.name = a.name)
     ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING;
    SELECT array_agg(f.id ORDER BY a.n), array_agg(f.revision ORDER BY a.n) INTO s_id, s_revision
      FROM unnest(s_tenant, s_kind, s_name) WITH ORDINALITY AS a (tenant, kind, name, n)
      JOIN scope AS f ON f.tenant = a.tenant AND f.kind = a.kind AND f.name = a.name;
    INSERT INTO run (id, tenant, scope, workflow, mode, status, author, started_at, ended_at,
                     parent, replay_of, snapshot_kept, variables, event_count, session,
                     reported_at)
    SELECT n.id, n.tenant, s_id[n.scope], n.workflow, n.mode, n.status, n.author, n.started_at,
           n.ended_at, n.parent, n.replay_of, n.snapshot_kept, n.variables, 1, n.session,
           n.reported_at
      FROM unnest(r_id, r_tenant, r_scope, r_workflow, r_mode, r_status, r_author, r_started_at,
                  r_ended_at, r_parent, r_replay_of, r_snapshot_kept, r_variables, r_session,
                  r_reported_at)
        AS n (id, tenant, scope, workflow, mode, status, author, started_at, ended_at, parent,
              replay_of, snapshot_kept, variables, session, reported_at);
    INSERT INTO run_layer (run, position, scope, revision)
    SELECT n.run, n.position, s_id[n.scope], coalesce(n.revision, s_revision[n.scope])
      FROM unnest(l_run, l_position, l_scope, l_revision) AS n (run, position, scope, revision);
    INSERT INTO event (tenant, scope, run, sequence, type, payload, at)
    SELECT n.tenant, s_id[n.scope], n.id, 1, 'run.started', n.payload, n.started_at
      FROM unnest(r_tenant, r_scope, r_id, r_payload, r_started_at)
        AS n (tenant, scope, id, payload, started_at);
    RETURN s_revision;
END $$;

-- Update a run if it has the expected state, and log an event if `event_type` is not NULL. False if
-- the run has another state.
CREATE FUNCTION update_run(
    lock bigint, run_id text, run_tenant text,
    expected_status text, expected_ended_at bigint, expected_snapshot_kept integer,
    expected_reported_at bigint,
    new_status text, new_ended_at bigint, new_snapshot_kept integer,
    new_abandoned_at bigint, new_reason text,
    event_type text, event_payload text, event_at bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    updated record;
BEGIN
    PERFORM acquire_locks(ARRAY[lock], ARRAY[true]);
    LOCK TABLE event IN ROW EXCLUSIVE MODE;
    UPDATE run SET status = new_status, ended_at = new_ended_at, snapshot_kept = new_snapshot_kept,
                   abandoned_at = new_abandoned_at, reason = new_reason,
                   event_count = event_count + (event_type IS NOT NULL)::integer
     WHERE id = run_id AND tenant = run_tenant AND status = expected_status
       AND snapshot_kept = expected_snapshot_kept
       AND ended_at IS NOT DISTINCT FROM expected_ended_at
       AND (expected_reported_at IS NULL OR reported_at = expected_reported_at)
    RETURNING scope, event_count INTO updated;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF new_snapshot_kept = 0 THEN
        DELETE FROM run_layer WHERE run = run_id;
    END IF;
    IF event_type IS NOT NULL THEN
        INSERT INTO event (tenant, scope, run, sequence, type, payload, at)
        VALUES (run_tenant, updated.scope, run_id, updated.event_count, event_type, event_payload,
                event_at);
    END IF;
    RETURN true;
END $$;

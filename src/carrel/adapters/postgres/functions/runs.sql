-- Starting and changing runs.

-- Insert runs (r) with their layers (l). Layers without a revision are frozen at the current one of
-- their scope (s); returns those revisions. One statement reads them, so that the snapshot never
-- contains half a commit. Shared locks on the scopes keep commits from pruning versions between
-- reading a revision and storing it.
CREATE FUNCTION start_runs(
    locks bigint[],
    s_tenant text[], s_kind text[], s_name text[],
    r_id text[], r_tenant text[], r_scope integer[], r_workflow text[], r_mode text[],
    r_status text[], r_by text[], r_started bigint[], r_ended bigint[], r_parent text[],
    r_replay_of text[], r_kept integer[], r_variables text[], r_payload text[],
    l_run text[], l_place integer[], l_scope integer[], l_revision bigint[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    s_id bigint[];
    s_revision bigint[];
BEGIN
    PERFORM take_locks(locks, array_fill(false, ARRAY[cardinality(locks)]));
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
    INSERT INTO run (id, tenant, scope, workflow, mode, status, by, started, ended, parent,
                     replay_of, kept, variables, events)
    SELECT n.id, n.tenant, s_id[n.scope], n.workflow, n.mode, n.status, n.by, n.started, n.ended,
           n.parent, n.replay_of, n.kept, n.variables, 1
      FROM unnest(r_id, r_tenant, r_scope, r_workflow, r_mode, r_status, r_by, r_started, r_ended,
                  r_parent, r_replay_of, r_kept, r_variables)
        AS n (id, tenant, scope, workflow, mode, status, by, started, ended, parent, replay_of,
              kept, variables);
    INSERT INTO run_layer (run, place, scope, revision)
    SELECT n.run, n.place, s_id[n.scope], coalesce(n.revision, s_revision[n.scope])
      FROM unnest(l_run, l_place, l_scope, l_revision) AS n (run, place, scope, revision);
    INSERT INTO event (tenant, scope, run, sequence, type, payload, at)
    SELECT n.tenant, s_id[n.scope], n.id, 1, 'run.started', n.payload, n.started
      FROM unnest(r_tenant, r_scope, r_id, r_payload, r_started)
        AS n (tenant, scope, id, payload, started);
    RETURN s_revision;
END $$;

-- Update a run if it is unchanged, and log the event named by `told`, if any. False if it changed.
CREATE FUNCTION change_run(
    lock bigint, of_id text, of_tenant text,
    was_status text, was_ended bigint, was_kept integer,
    new_status text, new_ended bigint, new_kept integer,
    told text, told_payload text, told_at bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    changed record;
BEGIN
    PERFORM take_locks(ARRAY[lock], ARRAY[true]);
    LOCK TABLE event IN ROW EXCLUSIVE MODE;
    UPDATE run SET status = new_status, ended = new_ended, kept = new_kept,
                   events = events + (told IS NOT NULL)::integer
     WHERE id = of_id AND tenant = of_tenant AND status = was_status AND kept = was_kept
       AND ended IS NOT DISTINCT FROM was_ended
    RETURNING scope, events INTO changed;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF new_kept = 0 THEN
        DELETE FROM run_layer WHERE run = of_id;
    END IF;
    IF told IS NOT NULL THEN
        INSERT INTO event (tenant, scope, run, sequence, type, payload, at)
        VALUES (of_tenant, changed.scope, of_id, changed.events, told, told_payload, told_at);
    END IF;
    RETURN true;
END $$;

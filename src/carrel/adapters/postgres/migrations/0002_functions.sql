-- What the store does in one round trip.

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

-- Changing the facts beside the files.

-- Apply the record changes of one commit in their order, with their audit. NULL if they were
-- applied; else [place of the change that cannot be, the handle that another has], and none was.
-- With `undo` they are only tried. Whoever calls this has the lock of all records, so that no handle
-- can be taken by two at a time.
CREATE FUNCTION apply_changes(
    changes jsonb, said_by text, said_why text, said_at bigint, undo boolean
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    c record;
    found_revision bigint;
    taken text;
    refused text;
    changed jsonb[] = '{}';
BEGIN
    FOR c IN
        SELECT x.*, e.n
          FROM jsonb_array_elements(changes) WITH ORDINALITY AS e (change, n),
               jsonb_to_record(e.change) AS x (tenant text, noun text, id text, body text,
                                               expected bigint, handles text[], links text[])
         ORDER BY e.n
    LOOP
        SELECT r.revision INTO found_revision FROM record AS r
         WHERE r.tenant = c.tenant AND r.noun = c.noun AND r.id = c.id;
        IF c.expected <> coalesce(found_revision, 0) THEN
            RAISE SQLSTATE 'CA001' USING DETAIL = jsonb_build_array(c.n, NULL);
        END IF;
        SELECT w.name INTO taken FROM unnest(c.handles) WITH ORDINALITY AS w (name, n)
          JOIN handle AS h ON h.name = w.name
         WHERE (h.tenant, h.noun, h.id) <> (c.tenant, c.noun, c.id) ORDER BY w.n LIMIT 1;
        IF taken IS NOT NULL THEN
            RAISE SQLSTATE 'CA001' USING DETAIL = jsonb_build_array(c.n, taken);
        END IF;

        DELETE FROM handle AS h WHERE h.tenant = c.tenant AND h.noun = c.noun AND h.id = c.id;
        DELETE FROM link AS l WHERE l.tenant = c.tenant AND l.noun = c.noun AND l.id = c.id;
        IF c.body IS NULL THEN
            DELETE FROM record AS r WHERE r.tenant = c.tenant AND r.noun = c.noun AND r.id = c.id;
            CONTINUE WHEN NOT FOUND;
        ELSE
            INSERT INTO record (tenant, noun, id, revision, body, created, changed)
            VALUES (c.tenant, c.noun, c.id, 1, c.body, said_at, said_at)
            ON CONFLICT (tenant, noun, id) DO UPDATE
               SET revision = record.revision + 1, body = excluded.body, changed = excluded.changed;
            INSERT INTO handle (name, tenant, noun, id)
            SELECT DISTINCT w.name, c.tenant, c.noun, c.id FROM unnest(c.handles) AS w (name);
            INSERT INTO link (tenant, noun, name, id)
            SELECT DISTINCT c.tenant, c.noun, w.name, c.id FROM unnest(c.links) AS w (name);
        END IF;
        changed = changed || jsonb_build_array(c.tenant, c.noun);
    END LOOP;

    INSERT INTO shelf (tenant, noun, revision)
    SELECT DISTINCT k.shelf ->> 0, k.shelf ->> 1, 1 FROM unnest(changed) AS k (shelf)
    ON CONFLICT (tenant, noun) DO UPDATE SET revision = shelf.revision + 1;
    UPDATE counter SET value = value + 1 WHERE name = 'records' AND cardinality(changed) > 0;
    INSERT INTO audit (tenant, at, by, why, subjects)
    SELECT e.change ->> 'tenant', said_at, said_by, said_why,
           jsonb_agg(concat(e.change ->> 'noun', '/', e.change ->> 'id') ORDER BY e.n)::text
      FROM jsonb_array_elements(changes) WITH ORDINALITY AS e (change, n)
     GROUP BY 1 ORDER BY min(e.n);
    IF undo THEN
        RAISE SQLSTATE 'CA002';
    END IF;
    RETURN NULL;
EXCEPTION
    WHEN SQLSTATE 'CA001' THEN
        GET STACKED DIAGNOSTICS refused = PG_EXCEPTION_DETAIL;
        RETURN refused::jsonb;
    WHEN SQLSTATE 'CA002' THEN
        RETURN NULL;
END $$;

-- The revision of each shelf, in order, 0 where nothing ever was.
CREATE FUNCTION shelf_revisions(tenants text[], nouns text[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    revisions bigint[];
BEGIN
    SELECT array_agg(coalesce(f.revision, 0) ORDER BY a.n) INTO revisions
      FROM unnest(tenants, nouns) WITH ORDINALITY AS a (tenant, noun, n)
      LEFT JOIN shelf AS f ON f.tenant = a.tenant AND f.noun = a.noun;
    RETURN revisions;
END $$;

-- Changing trees: the one way in.

-- Try many commits in order, each whole or not at all, in one transaction.
--
-- They come as columns, one letter a table: scopes (s), paths (p), shelves (h), contents (b), and per
-- commit (c) its expectations (e), its shelves as it saw them (x), its quotas (q) and writes (w).
-- A row refers to another by its place, from 1. c_e, c_x, c_q and c_w say where each commit's rows
-- begin: those of commit i are c_e[i] + 1 up to c_e[i + 1].
--
-- First all that is spoken of is read once. Then each commit is checked and, if nothing speaks
-- against it, noted in the same arrays, where the next one finds it. At last all is written, table by
-- table. The locks cover every scope, run, receipt and record that is written here, so that nobody
-- else writes them meanwhile; and, shared, what is only rested upon.
CREATE FUNCTION apply_commits(
    s_tenant text[], s_kind text[], s_name text[],
    p_path text[],
    h_tenant text[], h_noun text[],
    b_digest bytea[], b_body bytea[],
    c_by text[], c_why text[], c_run text[], c_changes jsonb[], c_receipt jsonb[],
    w_type text[],
    locks bigint[], alone boolean[],
    p_scope integer[],
    b_id bigint[], b_size bigint[],
    c_at bigint[], c_keep bigint[],
    c_e integer[], c_x integer[], c_q integer[], c_w integer[],
    e_path integer[], e_version bigint[], e_live boolean[],
    x_shelf integer[], x_revision bigint[],
    q_scope integer[], q_files bigint[], q_size bigint[],
    w_commit integer[], w_path integer[], w_blob integer[], w_base integer[], w_last boolean[],
    -- Per commit: 'a'pplied, or what was against it: an 'e'xpectation, a 's'helf, a 'c'hange, or the
    -- scope is 'f'ull; the row of that; and what was found: a write of this batch, or facts.
    OUT o_what text[], OUT o_row integer[], OUT o_write integer[], OUT o_facts jsonb[],
    -- Per write: the head it became. Per content: its id.
    OUT r_version bigint[], OUT r_revision bigint[], OUT r_at bigint[], OUT r_content bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
    s_id bigint[];
    s_revision bigint[];
    s_files bigint[];
    s_bytes bigint[];
    s_moved integer[] = array_fill(0, ARRAY[cardinality(s_tenant)]);
    p_version bigint[];
    p_revision bigint[];
    p_at bigint[];
    p_content bigint[];
    p_size bigint[];
    p_write integer[] = array_fill(0, ARRAY[cardinality(p_path)]);
    h_revision bigint[];
    b_at bigint[] = array_fill(NULL::bigint, ARRAY[cardinality(b_digest)]);
    r_moved boolean[] = array_fill(false, ARRAY[cardinality(w_path)]);
    r_sequence bigint[] = array_fill(NULL::bigint, ARRAY[cardinality(w_path)]);
    any_moved boolean = false;
    any_prunes boolean = false;
    files bigint;
    bytes bigint;
    wrong jsonb;
    full_row integer;
    given bigint;
    b integer;
    k integer;
    s integer;
BEGIN
    PERFORM take_locks(locks, alone);
    -- Before an id is given to this transaction, so that event_horizon() knows of it in time.
    LOCK TABLE event IN ROW EXCLUSIVE MODE;

    SELECT array_agg(r.id), array_agg(r.revision), array_agg(r.files), array_agg(r.size)
      INTO s_id, s_revision, s_files, s_bytes
      FROM (SELECT f.id, coalesce(f.revision, 0) AS revision, coalesce(f.files, 0) AS files,
                   coalesce(f.size, 0) AS size
              FROM unnest(s_tenant, s_kind, s_name) WITH ORDINALITY AS a (tenant, kind, name, n)
              LEFT JOIN scope AS f ON f.tenant = a.tenant AND f.kind = a.kind AND f.name = a.name
             ORDER BY a.n) AS r;
    SELECT array_agg(r.version), array_agg(r.revision), array_agg(r.at), array_agg(r.content),
           array_agg(r.size)
      INTO p_version, p_revision, p_at, p_content, p_size
      FROM (SELECT coalesce(f.version, 0) AS version, f.revision, f.at, f.content, f.size
              FROM unnest(p_scope, p_path) WITH ORDINALITY AS a (scope, path, n)
              LEFT JOIN entry AS f ON f.scope = s_id[a.scope] AND f.path = a.path
             ORDER BY a.n) AS r;
    IF cardinality(h_tenant) > 0 THEN
        h_revision = shelf_revisions(h_tenant, h_noun);
    END IF;
    IF cardinality(array_remove(b_id, NULL)) > 0 THEN
        PERFORM check_contents(b_id);
    END IF;
    o_row = array_fill(NULL::integer, ARRAY[cardinality(c_by)]);
    o_write = o_row;
    o_facts = array_fill(NULL::jsonb, ARRAY[cardinality(c_by)]);
    r_version = array_fill(NULL::bigint, ARRAY[cardinality(w_path)]);
    r_revision = r_version;
    r_at = r_version;

    <<commits>>
    FOR i IN 1 .. cardinality(c_by) LOOP
        FOR j IN c_e[i] + 1 .. c_e[i + 1] LOOP
            k = e_path[j];
            IF e_version[j] <> p_version[k] OR e_live[j] <> (p_content[k] IS NOT NULL) THEN
                o_what[i] = 'e';
                o_row[i] = j;
                o_write[i] = p_write[k];
                IF p_write[k] = 0 AND p_version[k] > 0 THEN
                    o_facts[i] = head_facts(s_id[p_scope[k]], p_path[k]);
                END IF;
                CONTINUE commits;
            END IF;
        END LOOP;

        FOR j IN c_x[i] + 1 .. c_x[i + 1] LOOP
            IF x_revision[j] <> h_revision[x_shelf[j]] THEN
                o_what[i] = 's';
                o_row[i] = j;
                CONTINUE commits;
            END IF;
        END LOOP;

        full_row = NULL;
        FOR j IN c_q[i] + 1 .. c_q[i + 1] LOOP
            s = q_scope[j];
            files = s_files[s];
            bytes = s_bytes[s];
            FOR m IN c_w[i] + 1 .. c_w[i + 1] LOOP
                k = w_path[m];
                IF w_last[m] AND p_scope[k] = s THEN
                    b = w_blob[m];
                    files = files + (b IS NOT NULL)::integer - (p_content[k] IS NOT NULL)::integer;
                    bytes = bytes + coalesce(b_size[b], 0) - coalesce(p_size[k], 0);
                END IF;
            END LOOP;
            -- What is over a lowered limit can still change, as long as it does not grow.
            IF files > greatest(q_files[j], s_files[s])
               OR q_size[j] IS NOT NULL AND bytes > greatest(q_size[j], s_bytes[s]) THEN
                full_row = j;
                EXIT;
            END IF;
        END LOOP;

        IF c_changes[i] IS NOT NULL THEN
            wrong = apply_changes(c_changes[i], c_by[i], c_why[i], c_at[i], full_row IS NOT NULL);
            IF wrong IS NOT NULL THEN
                o_what[i] = 'c';
                o_facts[i] = wrong;
                CONTINUE commits;
            END IF;
            h_revision = shelf_revisions(h_tenant, h_noun);
        END IF;
        IF full_row IS NOT NULL THEN
            o_what[i] = 'f';
            o_row[i] = full_row;
            o_facts[i] = jsonb_build_array(files, bytes);
            CONTINUE commits;
        END IF;

        o_what[i] = 'a';
        FOR j IN c_w[i] + 1 .. c_w[i + 1] LOOP
            k = w_path[j];
            s = p_scope[k];
            b = w_blob[j];
            IF b IS NULL AND p_content[k] IS NULL THEN -- deleting what is not there
                r_version[j] = p_version[k];
                r_revision[j] = coalesce(p_revision[k], s_revision[s] - (s_moved[s] = i)::integer);
                r_at[j] = coalesce(p_at[k], c_at[i]);
                CONTINUE;
            END IF;
            IF s_moved[s] <> i THEN
                s_moved[s] = i;
                s_revision[s] = s_revision[s] + 1;
                IF s_id[s] IS NULL THEN
                    INSERT INTO scope (tenant, kind, name, revision, files, size)
                    VALUES (s_tenant[s], s_kind[s], s_name[s], 0, 0, 0) RETURNING id INTO given;
                    s_id[s] = given;
                END IF;
            END IF;
            IF b IS NOT NULL AND b_id[b] IS NULL THEN
                b_id[b] = nextval('content_id_seq');
                b_at[b] = c_at[i];
            END IF;
            IF w_base[j] IS NOT NULL AND b_id[w_base[j]] IS NULL THEN
                b_id[w_base[j]] = nextval('content_id_seq');
                b_at[w_base[j]] = c_at[i];
            END IF;
            s_files[s] = s_files[s] + (b IS NOT NULL)::integer - (p_content[k] IS NOT NULL)::integer;
            s_bytes[s] = s_bytes[s] + coalesce(b_size[b], 0) - coalesce(p_size[k], 0);
            p_version[k] = p_version[k] + 1;
            p_revision[k] = s_revision[s];
            p_at[k] = c_at[i];
            p_content[k] = b_id[b];
            p_size[k] = b_size[b];
            p_write[k] = j;
            r_moved[j] = true;
            r_version[j] = p_version[k];
            r_revision[j] = p_revision[k];
            r_at[j] = c_at[i];
            any_moved = true;
            any_prunes = any_prunes OR p_version[k] > c_keep[i];
            IF c_run[i] IS NOT NULL THEN
                UPDATE run SET events = events + 1 WHERE id = c_run[i] AND tenant = s_tenant[s]
                RETURNING events INTO given;
                r_sequence[j] = given;
            END IF;
        END LOOP;

        IF c_receipt[i] IS NOT NULL THEN
            UPDATE receipt AS r
               SET versions = array_to_json(r_version[c_w[i] + 1 : c_w[i + 1]])::text
             WHERE r.tenant = c_receipt[i] ->> 0 AND r.endpoint = c_receipt[i] ->> 1
               AND r.key = c_receipt[i] ->> 2;
        END IF;
    END LOOP;
    r_content = b_id;
    IF NOT any_moved THEN
        RETURN;
    END IF;

    INSERT INTO content (id, digest, size, at, body)
    SELECT n.id, n.digest, n.size, n.at, n.body
      FROM unnest(b_id, b_digest, b_size, b_at, b_body) AS n (id, digest, size, at, body)
     WHERE n.at IS NOT NULL;
    INSERT INTO version (scope, path, version, revision, at, content, digest, size, base, type,
                         by, why, run)
    SELECT s_id[p_scope[n.path]], p_path[n.path], n.version, n.revision, n.at, b_id[n.blob],
           b_digest[n.blob], b_size[n.blob], b_id[n.base], n.type,
           c_by[n.commit], c_why[n.commit], c_run[n.commit]
      FROM unnest(w_path, w_commit, w_blob, w_base, w_type, r_moved, r_version, r_revision, r_at)
        AS n (path, commit, blob, base, type, moved, version, revision, at)
     WHERE n.moved;
    INSERT INTO entry (scope, path, version, revision, at, content, digest, size, base, type)
    SELECT s_id[n.scope], n.path, n.version, n.revision, n.at, n.content,
           b_digest[w_blob[n.write]], n.size, b_id[w_base[n.write]], w_type[n.write]
      FROM unnest(p_scope, p_path, p_write, p_version, p_revision, p_at, p_content, p_size)
        AS n (scope, path, write, version, revision, at, content, size)
     WHERE n.write > 0
    ON CONFLICT (scope, path) DO UPDATE
       SET version = excluded.version, revision = excluded.revision, at = excluded.at,
           content = excluded.content, digest = excluded.digest, size = excluded.size,
           base = excluded.base, type = excluded.type;
    INSERT INTO event (tenant, scope, run, sequence, type, payload, at)
    SELECT s_tenant[p_scope[n.path]], s_id[p_scope[n.path]], c_run[n.commit], n.sequence,
           'workspace.updated',
           json_build_object('path', p_path[n.path], 'version', n.version)::text, n.at
      FROM unnest(w_path, w_commit, r_moved, r_version, r_sequence, r_at)
        AS n (path, commit, moved, version, sequence, at)
     WHERE n.moved;
    UPDATE scope AS f SET revision = n.revision, files = n.files, size = n.size
      FROM unnest(s_id, s_revision, s_files, s_bytes, s_moved)
        AS n (id, revision, files, size, moved)
     WHERE n.moved > 0 AND f.id = n.id;
    IF any_prunes THEN
        -- Of a path that now has version n, version n - keep goes, unless a kept run stands at a
        -- revision from which it is the newest to be seen. A run that is being started meanwhile
        -- is waiting for this scope's lock, and will freeze what it is once this is committed.
        DELETE FROM version AS v
         USING unnest(w_path, w_commit, r_moved, r_version) AS n (path, commit, moved, version)
         WHERE n.moved AND v.scope = s_id[p_scope[n.path]] AND v.path = p_path[n.path]
           AND v.version = n.version - c_keep[n.commit]
           AND NOT EXISTS (
               SELECT FROM run_layer AS l
                WHERE l.scope = v.scope AND l.revision >= v.revision
                  AND l.revision < (SELECT m.revision FROM version AS m
                                     WHERE m.scope = v.scope AND m.path = v.path
                                       AND m.version > v.version ORDER BY m.version LIMIT 1));
    END IF;
END $$;

-- Raise if one of these contents is gone. Whoever calls this shares their locks, so they stay.
CREATE FUNCTION check_contents(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    SELECT w.id INTO gone FROM unnest(ids) AS w (id)
      LEFT JOIN content AS c ON c.id = w.id
     WHERE w.id IS NOT NULL AND c.id IS NULL LIMIT 1;
    IF FOUND THEN
        RAISE SQLSTATE 'CA003' USING MESSAGE = format('content %s is gone', gone);
    END IF;
END $$;

-- A head as [version, revision, at, content, digest, size, type, base, its digest, its size].
CREATE FUNCTION head_facts(of_scope bigint, of_path text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_array(e.version, e.revision, e.at, e.content, encode(e.digest, 'hex'), e.size,
                             e.type, e.base, encode(b.digest, 'hex'), b.size)
      FROM entry AS e LEFT JOIN content AS b ON b.id = e.base
     WHERE e.scope = of_scope AND e.path = of_path
$$;

-- Starting and changing runs.

-- Record runs (r) with their layers (l), those without a revision frozen at the one their scope (s)
-- has now, and say those revisions. They are read by one statement, so the vector shows one moment:
-- never half of a commit. The scopes are locked, shared, while this lasts: between reading a revision
-- and holding it no commit may prune what is seen from there.
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

-- Change a run that still is as it was, and log it if `told` names an event. False if it is not.
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

-- Following the log without missing anything.

-- The first transaction that may still add an event: all events of those before it can be seen.
--
-- That is at most the oldest transaction under way. But others than ours are under way too, perhaps
-- for hours, in other databases even; so where events stand behind one of those, the locks tell
-- which of them write events: whoever does has locked the table before an id was given to it. One
-- that is not in the list of locks has just begun or just ended; then everything is looked at again.
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

-- Events past a cursor, in order. NULLs are open; without a tenant those of all tenants.
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
    -- Events that came with a restore have no transaction here, so they go first, by id. A cursor
    -- from before the restore is known by an id among theirs, or by a transaction yet to come.
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

-- The greatest id that an event has, or had before it was collected.
CREATE FUNCTION greatest_event() RETURNS bigint LANGUAGE sql AS $$
    SELECT greatest((SELECT max(id) FROM event), (SELECT value FROM counter WHERE name = 'event'))
$$;

-- A mark as the id up to which every event has been turned into deliveries: good in any store.
CREATE FUNCTION portable_mark(cursor text) RETURNS bigint LANGUAGE sql AS $$
    SELECT coalesce(
        (SELECT min(e.id) - 1 FROM event AS e
          WHERE (e.xid, e.id) > (split_part(cursor, '.', 1)::xid8, split_part(cursor, '.', 2)::bigint)),
        greatest_event())
$$;

-- Take the events there are as having come from elsewhere, as they have after a restore, or when the
-- database was copied to another server: transactions are counted anew there.
CREATE FUNCTION rebase_events() RETURNS void LANGUAGE sql AS $$
    UPDATE mark SET cursor = '0.' || portable_mark(cursor);
    UPDATE event SET xid = '0' WHERE xid <> '0';
    UPDATE counter SET value = greatest_event() WHERE name = 'loaded';
$$;

-- Requests that must not be done twice.

-- Take a key, or give what is known of whoever has it: one row, `taken` or not.
-- A claim need not be on disk when it is answered: a commit that marks it comes later in the log,
-- so if that survives, the claim does.
CREATE FUNCTION claim_receipt(
    of_tenant text, of_endpoint text, of_key text, of_fingerprint text, now_at bigint, stale bigint,
    OUT taken boolean, OUT fingerprint text, OUT versions text, OUT status integer, OUT sealed text
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    LOOP
        INSERT INTO receipt AS r (tenant, endpoint, key, fingerprint, claimed)
        VALUES (of_tenant, of_endpoint, of_key, of_fingerprint, now_at)
        ON CONFLICT (tenant, endpoint, key) DO UPDATE SET claimed = excluded.claimed
         WHERE r.fingerprint = excluded.fingerprint AND r.claimed < stale
           AND r.versions IS NULL AND r.status IS NULL;
        taken = FOUND;
        EXIT WHEN taken;
        SELECT r.fingerprint, r.versions, r.status, r.sealed
          INTO fingerprint, versions, status, sealed FROM receipt AS r
         WHERE r.tenant = of_tenant AND r.endpoint = of_endpoint AND r.key = of_key;
        EXIT WHEN FOUND; -- else it was given back in between
    END LOOP;
END $$;

-- What is posted to webhooks.

-- Add deliveries and move the mark from where it was seen; false if it is not there any more.
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

-- Store deliveries as they are now, each with one more attempt. Their rows are locked in order, so
-- that two who settle the same ones do not wait for each other, and number the attempts in turn.
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

-- Looking after the store as a whole.

-- Drop the versions of a scope that `keep` does not cover and no kept run can see; say how many.
-- It is locked, so that no run starts to see one of them meanwhile.
CREATE FUNCTION prune_scope(lock bigint, of_scope bigint, keep bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    gone bigint;
BEGIN
    PERFORM take_locks(ARRAY[lock], ARRAY[true]);
    DELETE FROM version AS v USING entry AS e
     WHERE e.scope = of_scope AND v.scope = of_scope AND v.path = e.path
       AND v.version <= e.version - keep
       AND NOT EXISTS (
           SELECT FROM run_layer AS l
            WHERE l.scope = of_scope AND l.revision >= v.revision
              AND l.revision < (SELECT m.revision FROM version AS m
                                 WHERE m.scope = of_scope AND m.path = v.path
                                   AND m.version > v.version ORDER BY m.version LIMIT 1));
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END $$;

-- Drop those of these contents that nothing refers to; say how many. A commit that is about to refer
-- to one shares its lock: that one is passed over.
CREATE FUNCTION drop_contents(ids bigint[], locks bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    free bigint[];
    gone bigint;
BEGIN
    PERFORM take_locks('{}', '{}');
    free = ARRAY(SELECT w.id FROM unnest(ids, locks) AS w (id, lock)
                  WHERE pg_try_advisory_xact_lock(w.lock));
    DELETE FROM content AS c
     WHERE c.id = ANY (free)
       AND NOT EXISTS (SELECT FROM version AS v WHERE v.content = c.id)
       AND NOT EXISTS (SELECT FROM version AS v WHERE v.base = c.id);
    GET DIAGNOSTICS gone = ROW_COUNT;
    UPDATE counter SET value = greatest(value, (SELECT max(w.id) FROM unnest(free) AS w (id)))
     WHERE name = 'content';
    RETURN gone;
END $$;

-- Go on counting where what was loaded ends.
CREATE FUNCTION continue_numbers() RETURNS void LANGUAGE sql AS $$
    SELECT setval('scope_id_seq', n) FROM (SELECT max(id) AS n FROM scope) AS x WHERE n > 0;
    SELECT setval('audit_id_seq', n) FROM (SELECT max(id) AS n FROM audit) AS x WHERE n > 0;
    SELECT setval('content_id_seq', n)
      FROM (SELECT greatest((SELECT max(id) FROM content),
                            (SELECT value FROM counter WHERE name = 'content')) AS n) AS x WHERE n > 0;
    SELECT setval('event_id_seq', n)
      FROM (SELECT greatest_event() AS n) AS x WHERE n > 0;
$$;

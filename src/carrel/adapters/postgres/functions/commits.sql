-- Commits: the only write path of trees.

-- Apply many commits in order in one transaction, each entirely or not at all.
--
-- Arguments are column arrays with a prefix per table: scopes (s), paths (p), record collections
-- (col), contents (b), and per commit (c) its expectations (e), expected collection revisions
-- (rev), quotas (q), writes (w) and path checks (check). Rows refer to each other by index, from 1.
-- c_e, c_rev, c_q, c_w and c_check hold where each commit's rows begin: those of commit i are
-- c_e[i] + 1 to c_e[i + 1].
--
-- Reads all affected rows once, then checks each commit and applies it to the arrays, so that later
-- commits see it, and finally writes table by table. Exclusive locks cover every scope, run,
-- idempotency key and record that is written; shared locks cover what is only expected.
CREATE FUNCTION apply_commits(
    s_tenant text[], s_kind text[], s_name text[],
    p_path text[],
    col_tenant text[], col_type text[],
    b_digest bytea[], b_body bytea[],
    c_author text[], c_reason text[], c_run text[], c_changes jsonb[], c_idempotency_key jsonb[],
    w_type text[], w_file_id text[], w_source text[], w_reviewed text[],
    locks bigint[], exclusive boolean[],
    p_scope integer[],
    b_id bigint[], b_size bigint[],
    c_at bigint[], c_max_versions bigint[],
    c_e integer[], c_rev integer[], c_q integer[], c_w integer[], c_check integer[],
    e_path integer[], e_version bigint[], e_live boolean[],
    rev_col integer[], rev_revision bigint[],
    q_scope integer[], q_files bigint[], q_size bigint[],
    check_path integer[], check_parent integer[], check_scope integer[],
    w_commit integer[], w_path integer[], w_blob integer[], w_base integer[], w_last boolean[],
    w_offset bigint[], w_mode integer[], w_mtime_ns bigint[],
    -- Per commit: 'applied', or the failed check: 'expectation', 'collection' (revision), 'change'
    -- (of a record), 'path' or 'quota'; its row; and the current state: a write of this batch, or
    -- JSON.
    OUT o_code text[], OUT o_row integer[], OUT o_write integer[], OUT o_state jsonb[],
    -- Per write: the new head. Per content: its id.
    OUT r_version bigint[], OUT r_offset bigint[], OUT r_revision bigint[], OUT r_at bigint[],
    OUT r_content bigint[], OUT r_file_id text[]
) LANGUAGE plpgsql AS $$
DECLARE
    s_id bigint[];
    s_revision bigint[];
    s_files bigint[];
    s_bytes bigint[];
    s_changed integer[] = array_fill(0, ARRAY[cardinality(s_tenant)]);
    p_version bigint[];
    p_offset bigint[];
    p_revision bigint[];
    p_at bigint[];
    p_content bigint[];
    p_directory boolean[];
    p_size bigint[];
    p_file_id text[];
    p_deletion integer[] = array_fill(0, ARRAY[cardinality(p_path)]);
    p_write integer[] = array_fill(0, ARRAY[cardinality(p_path)]);
    written integer[] = '{}';
    deleted integer[];
    col_revision bigint[];
    b_created_at bigint[] = array_fill(NULL::bigint, ARRAY[cardinality(b_digest)]);
    r_changed boolean[] = array_fill(false, ARRAY[cardinality(w_path)]);
    r_sequence bigint[] = array_fill(NULL::bigint, ARRAY[cardinality(w_path)]);
    event_commit integer[] = '{}';
    event_draft jsonb[] = '{}';
    event_sequence bigint[] = '{}';
    draft jsonb;
    any_changed boolean = false;
    any_pruned boolean = false;
    files bigint;
    bytes bigint;
    refusal jsonb;
    quota_row integer;
    check_row integer;
    occupant text;
    checked_scope bigint;
    checked_path text;
    new_value bigint;
    b integer;
    k integer;
    s integer;
BEGIN
    PERFORM acquire_locks(locks, exclusive);
    -- Before this transaction gets an id, so that event_horizon() sees it in time.
    LOCK TABLE event IN ROW EXCLUSIVE MODE;

    SELECT array_agg(r.id), array_agg(r.revision), array_agg(r.files), array_agg(r.size)
      INTO s_id, s_revision, s_files, s_bytes
      FROM (SELECT f.id, coalesce(f.revision, 0) AS revision, coalesce(f.files, 0) AS files,
                   coalesce(f.size, 0) AS size
              FROM unnest(s_tenant, s_kind, s_name) WITH ORDINALITY AS a (tenant, kind, name, n)
              LEFT JOIN scope AS f ON f.tenant = a.tenant AND f.kind = a.kind AND f.name = a.name
             ORDER BY a.n) AS r;
    SELECT array_agg(r.version), array_agg(r.version_offset), array_agg(r.revision),
           array_agg(r.at), array_agg(r.content), array_agg(r.directory), array_agg(r.size),
           array_agg(r.file_id)
      INTO p_version, p_offset, p_revision, p_at, p_content, p_directory, p_size, p_file_id
      FROM (SELECT coalesce(f.version, 0) AS version,
                   coalesce(f.version_offset, 0) AS version_offset, f.revision, f.at, f.content,
                   coalesce(f.content IS NULL AND f.type = 'inode/directory', false) AS directory,
                   f.size, f.file_id
              FROM unnest(p_scope, p_path) WITH ORDINALITY AS a (scope, path, n)
              LEFT JOIN entry AS f ON f.scope = s_id[a.scope] AND f.path = a.path
             ORDER BY a.n) AS r;
    IF cardinality(col_tenant) > 0 THEN
        col_revision = collection_revisions(col_tenant, col_type);
    END IF;
    IF cardinality(array_remove(b_id, NULL)) > 0 THEN
        PERFORM check_contents(b_id);
    END IF;
    o_row = array_fill(NULL::integer, ARRAY[cardinality(c_author)]);
    o_write = o_row;
    o_state = array_fill(NULL::jsonb, ARRAY[cardinality(c_author)]);
    r_version = array_fill(NULL::bigint, ARRAY[cardinality(w_path)]);
    r_offset = r_version;
    r_revision = r_version;
    r_at = r_version;
    r_file_id = array_fill(NULL::text, ARRAY[cardinality(w_path)]);

    <<commits>>
    FOR i IN 1 .. cardinality(c_author) LOOP
        FOR j IN c_e[i] + 1 .. c_e[i + 1] LOOP
            k = e_path[j];
            IF e_version[j] <> p_version[k] OR e_live[j] <> (p_content[k] IS NOT NULL) THEN
                o_code[i] = 'expectation';
                o_row[i] = j;
                o_write[i] = p_write[k];
                IF p_write[k] = 0 AND p_version[k] > 0 THEN
                    o_state[i] = head_to_json(s_id[p_scope[k]], p_path[k]);
                END IF;
                CONTINUE commits;
            END IF;
        END LOOP;

        FOR j IN c_rev[i] + 1 .. c_rev[i + 1] LOOP
            IF rev_revision[j] <> col_revision[rev_col[j]] THEN
                o_code[i] = 'collection';
                o_row[i] = j;
                CONTINUE commits;
            END IF;
        END LOOP;

        check_row = NULL;
        -- What a commit deletes is free for its other writes.
        deleted = '{}';
        IF c_check[i] < c_check[i + 1] THEN
            FOR m IN c_w[i] + 1 .. c_w[i + 1] LOOP
                IF w_type[m] IS NULL THEN
                    p_deletion[w_path[m]] = i;
                    deleted = deleted || w_path[m];
                END IF;
            END LOOP;
        END IF;
        FOR j IN c_check[i] + 1 .. c_check[i + 1] LOOP
            CONTINUE WHEN p_content[check_path[j]] IS NOT NULL;
            IF check_scope[j] IS NULL THEN
                occupant = CASE WHEN p_content[check_parent[j]] IS NOT NULL
                                 AND p_deletion[check_parent[j]] <> i
                                THEN p_path[check_parent[j]] END;
            ELSE
                s = check_scope[j];
                checked_scope = s_id[s];
                checked_path = p_path[check_path[j]];
                occupant = NULL;
                IF cardinality(written) > 0 THEN
                    -- Earlier commits of this call.
                    SELECT min(p_path[w.k]) INTO occupant
                      FROM unnest(written) AS w (k)
                     WHERE p_scope[w.k] = s AND (p_content[w.k] IS NOT NULL OR p_directory[w.k])
                       AND p_deletion[w.k] <> i
                       AND (starts_with(p_path[w.k], checked_path || '/')
                            OR p_directory[w.k] AND p_path[w.k] = checked_path);
                END IF;
                IF checked_scope IS NOT NULL THEN
                    SELECT least(occupant, min(x.path)) INTO occupant
                      FROM ((SELECT f.path FROM entry AS f
                              WHERE f.scope = checked_scope
                                AND f.path > checked_path || '/' AND f.path < checked_path || '0'
                                AND (f.content IS NOT NULL OR f.type = 'inode/directory')
                                AND NOT EXISTS (SELECT FROM unnest(written || deleted) AS w (k)
                                                 WHERE p_scope[w.k] = s AND p_path[w.k] = f.path)
                              ORDER BY f.path LIMIT 1)
                            UNION ALL
                            SELECT f.path FROM entry AS f
                             WHERE f.scope = checked_scope AND f.path = checked_path
                               AND f.content IS NULL AND f.type = 'inode/directory'
                               AND NOT EXISTS (SELECT FROM unnest(written || deleted) AS w (k)
                                                WHERE p_scope[w.k] = s AND p_path[w.k] = f.path)
                           ) AS x (path);
                END IF;
            END IF;
            IF occupant IS NOT NULL THEN
                check_row = j;
                EXIT;
            END IF;
        END LOOP;

        quota_row = NULL;
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
            -- A scope above a lowered limit may still change if it does not grow.
            IF files > greatest(q_files[j], s_files[s])
               OR q_size[j] IS NOT NULL AND bytes > greatest(q_size[j], s_bytes[s]) THEN
                quota_row = j;
                EXIT;
            END IF;
        END LOOP;

        IF c_changes[i] IS NOT NULL THEN
            refusal = apply_record_changes(c_changes[i], c_author[i], c_reason[i], c_at[i],
                                           check_row IS NOT NULL OR quota_row IS NOT NULL);
            IF refusal IS NOT NULL THEN
                o_code[i] = 'change';
                o_state[i] = refusal;
                CONTINUE commits;
            END IF;
            col_revision = collection_revisions(col_tenant, col_type);
        END IF;
        IF check_row IS NOT NULL THEN
            o_code[i] = 'path';
            o_row[i] = check_row;
            o_state[i] = to_jsonb(occupant);
            CONTINUE commits;
        END IF;
        IF quota_row IS NOT NULL THEN
            o_code[i] = 'quota';
            o_row[i] = quota_row;
            o_state[i] = jsonb_build_array(files, bytes);
            CONTINUE commits;
        END IF;

        o_code[i] = 'applied';
        FOR j IN c_w[i] + 1 .. c_w[i + 1] LOOP
            k = w_path[j];
            s = p_scope[k];
            b = w_blob[j];
            IF w_type[j] IS NULL AND p_content[k] IS NULL AND NOT p_directory[k]
                AND w_reviewed[j] IS NULL THEN
                -- deletion of an absent path
                r_version[j] = p_version[k];
                r_offset[j] = p_offset[k];
                r_revision[j] = coalesce(p_revision[k],
                                         s_revision[s] - (s_changed[s] = i)::integer);
                r_at[j] = coalesce(p_at[k], c_at[i]);
                CONTINUE;
            END IF;
            IF s_changed[s] <> i THEN
                s_changed[s] = i;
                s_revision[s] = s_revision[s] + 1;
                IF s_id[s] IS NULL THEN
                    INSERT INTO scope (tenant, kind, name, revision, files, size)
                    VALUES (s_tenant[s], s_kind[s], s_name[s], 0, 0, 0) RETURNING id INTO new_value;
                    s_id[s] = new_value;
                END IF;
            END IF;
            IF b IS NOT NULL AND b_id[b] IS NULL THEN
                b_id[b] = nextval('content_id_seq');
                b_created_at[b] = c_at[i];
            END IF;
            IF w_base[j] IS NOT NULL AND b_id[w_base[j]] IS NULL THEN
                b_id[w_base[j]] = nextval('content_id_seq');
                b_created_at[w_base[j]] = c_at[i];
            END IF;
            s_files[s] = s_files[s] + (b IS NOT NULL)::integer
                         - (p_content[k] IS NOT NULL)::integer;
            s_bytes[s] = s_bytes[s] + coalesce(b_size[b], 0) - coalesce(p_size[k], 0);
            IF b IS NULL THEN
                p_file_id[k] = NULL;
            ELSIF w_file_id[j] IS NOT NULL THEN
                p_file_id[k] = w_file_id[j];
            ELSIF p_content[k] IS NULL THEN
                p_file_id[k] = new_file_id(s_tenant[s], s_kind[s], s_name[s], p_path[k],
                                           p_version[k] + 1);
            END IF;
            r_file_id[j] = p_file_id[k];
            p_version[k] = p_version[k] + 1;
            p_offset[k] = greatest(p_offset[k], w_offset[j]);
            p_revision[k] = s_revision[s];
            p_at[k] = c_at[i];
            p_content[k] = b_id[b];
            p_directory[k] = b IS NULL AND w_type[j] IS NOT NULL;
            p_size[k] = b_size[b];
            IF p_write[k] = 0 THEN
                written = written || k;
            END IF;
            p_write[k] = j;
            r_changed[j] = true;
            r_version[j] = p_version[k];
            r_offset[j] = p_offset[k];
            r_revision[j] = p_revision[k];
            r_at[j] = c_at[i];
            any_changed = true;
            any_pruned = any_pruned OR p_version[k] > c_max_versions[i];
            IF c_run[i] IS NOT NULL THEN
                UPDATE run SET event_count = event_count + 1,
                               reported_at = greatest(reported_at, c_at[i])
                 WHERE id = c_run[i] AND tenant = s_tenant[s]
                RETURNING event_count INTO new_value;
                r_sequence[j] = new_value;
            END IF;
        END LOOP;

        IF c_changes[i] IS NOT NULL THEN
            FOR draft IN SELECT e.change FROM jsonb_array_elements(c_changes[i])
                           WITH ORDINALITY AS e (change, n)
                          WHERE e.change ->> 'kind' = 'event' ORDER BY e.n LOOP
                new_value = NULL;
                IF c_run[i] IS NOT NULL THEN
                    UPDATE run SET event_count = event_count + 1,
                                   reported_at = greatest(reported_at, c_at[i])
                     WHERE id = c_run[i] AND tenant = draft ->> 'tenant'
                    RETURNING event_count INTO new_value;
                END IF;
                event_commit = event_commit || i;
                event_draft = event_draft || draft;
                event_sequence = event_sequence || new_value;
            END LOOP;
        END IF;

        IF c_idempotency_key[i] IS NOT NULL THEN
            UPDATE idempotency_key AS r
               SET versions = (to_jsonb(r_version[c_w[i] + 1 : c_w[i + 1]])
                               || (c_idempotency_key[i] -> 3))::text,
                   revision = (SELECT max(n.revision)
                                 FROM unnest(r_revision[c_w[i] + 1 : c_w[i + 1]]) AS n (revision))
             WHERE r.tenant = c_idempotency_key[i] ->> 0
               AND r.endpoint = c_idempotency_key[i] ->> 1
               AND r.key = c_idempotency_key[i] ->> 2;
        END IF;
    END LOOP;
    r_content = b_id;
    IF NOT any_changed AND cardinality(event_draft) = 0 THEN
        RETURN;
    END IF;

    INSERT INTO content (id, digest, size, created_at, body)
    SELECT n.id, n.digest, n.size, n.created_at, n.body
      FROM unnest(b_id, b_digest, b_size, b_created_at, b_body)
        AS n (id, digest, size, created_at, body)
     WHERE n.created_at IS NOT NULL;
    INSERT INTO version (scope, path, version, revision, at, content, digest, size, base, type,
                         author, reason, run, version_offset, mode, mtime_ns, file_id, source,
                         reviewed)
    SELECT s_id[p_scope[n.path]], p_path[n.path], n.version, n.revision, n.at, b_id[n.blob],
           b_digest[n.blob], b_size[n.blob], b_id[n.base], n.type,
           c_author[n.commit], c_reason[n.commit], c_run[n.commit], n.version_offset,
           n.mode, n.mtime_ns, n.file_id, n.source, n.reviewed
      FROM unnest(w_path, w_commit, w_blob, w_base, w_type, w_mode, w_mtime_ns, r_changed,
                  r_version, r_offset, r_revision, r_at, r_file_id, w_source, w_reviewed)
        AS n (path, commit, blob, base, type, mode, mtime_ns, changed, version, version_offset,
              revision, at, file_id, source, reviewed)
     WHERE n.changed;
    INSERT INTO entry (scope, path, version, revision, at, content, digest, size, base, type,
                       version_offset, mode, mtime_ns, file_id, reviewed)
    SELECT s_id[n.scope], n.path, n.version, n.revision, n.at, n.content,
           b_digest[w_blob[n.write]], n.size, b_id[w_base[n.write]], w_type[n.write],
           n.version_offset, w_mode[n.write], w_mtime_ns[n.write], n.file_id,
           w_reviewed[n.write]
      FROM unnest(p_scope, p_path, p_write, p_version, p_offset, p_revision, p_at, p_content,
                  p_size, p_file_id)
        AS n (scope, path, write, version, version_offset, revision, at, content, size, file_id)
     WHERE n.write > 0
    ON CONFLICT (scope, path) DO UPDATE
       SET version = excluded.version, revision = excluded.revision, at = excluded.at,
           content = excluded.content, digest = excluded.digest, size = excluded.size,
           base = excluded.base, type = excluded.type, version_offset = excluded.version_offset,
           mode = excluded.mode, mtime_ns = excluded.mtime_ns, file_id = excluded.file_id,
           reviewed = excluded.reviewed;
    IF cardinality(event_draft) = 0 THEN
        INSERT INTO event (tenant, scope, run, sequence, type, payload, at)
        SELECT s_tenant[p_scope[n.path]], s_id[p_scope[n.path]], c_run[n.commit], n.sequence,
               'workspace.updated',
               json_build_object('path', p_path[n.path], 'version', n.version + n.version_offset)::text, n.at
          FROM unnest(w_path, w_commit, r_changed, r_version, r_offset, r_sequence, r_at)
            AS n (path, commit, changed, version, version_offset, sequence, at)
         WHERE n.changed;
    ELSE
        -- Ordered by commit, since both kinds of events share the run's sequence.
        INSERT INTO event (tenant, scope, run, sequence, type, payload, at)
        SELECT b.tenant, b.scope, c_run[b.commit], b.sequence, b.type, b.payload, c_at[b.commit]
          FROM (SELECT n.commit, 0 AS later, n.position, s_tenant[p_scope[n.path]] AS tenant,
                       s_id[p_scope[n.path]] AS scope, n.sequence, 'workspace.updated' AS type,
                       json_build_object('path', p_path[n.path], 'version', n.version + n.version_offset)::text
                         AS payload
                  FROM unnest(w_path, w_commit, r_changed, r_version, r_offset, r_sequence)
                       WITH ORDINALITY
                    AS n (path, commit, changed, version, version_offset, sequence, position)
                 WHERE n.changed
                UNION ALL
                SELECT t.commit, 1, t.position, t.draft ->> 'tenant', NULL, t.sequence,
                       t.draft ->> 'type', t.draft ->> 'payload'
                  FROM unnest(event_commit, event_draft, event_sequence) WITH ORDINALITY
                    AS t (commit, draft, sequence, position)) AS b
         ORDER BY b.commit, b.later, b.position;
    END IF;
    UPDATE scope AS f SET revision = n.revision, files = n.files, size = n.size
      FROM unnest(s_id, s_revision, s_files, s_bytes, s_changed)
        AS n (id, revision, files, size, changed)
     WHERE n.changed > 0 AND f.id = n.id;
    IF any_pruned THEN
        -- Delete version n - max_versions of a path at version n, unless it is the newest version
        -- visible to a kept run. A run that is being started waits for this scope's lock and will
        -- freeze the state after this commit.
        DELETE FROM version AS v
         USING unnest(w_path, w_commit, r_changed, r_version) AS n (path, commit, changed, version)
         WHERE n.changed AND v.scope = s_id[p_scope[n.path]] AND v.path = p_path[n.path]
           AND v.version = n.version - c_max_versions[n.commit]
           AND NOT EXISTS (
               SELECT FROM run_layer AS l
                WHERE l.scope = v.scope AND l.revision >= v.revision
                  AND l.revision < (SELECT m.revision FROM version AS m
                                     WHERE m.scope = v.scope AND m.path = v.path
                                       AND m.version > v.version ORDER BY m.version LIMIT 1));
    END IF;
END $$;

-- Id of a file that begins at a version of a path; NULL at version 1. As file_id in
-- core/store/entry.py.
CREATE FUNCTION new_file_id(tenant text, kind text, name text, path text, version bigint)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN version > 1 THEN
        'f_' || substr(encode(sha256(convert_to(
            concat_ws(E'\n', tenant, kind, name, path, version), 'UTF8')), 'hex'), 1, 24) END
$$;

-- Raise if one of these contents was deleted. The caller holds shared locks on them.
CREATE FUNCTION check_contents(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    missing_id bigint;
BEGIN
    SELECT w.id INTO missing_id FROM unnest(ids) AS w (id)
      LEFT JOIN content AS c ON c.id = w.id
     WHERE w.id IS NOT NULL AND c.id IS NULL LIMIT 1;
    IF FOUND THEN
        RAISE SQLSTATE 'CA003' USING MESSAGE = format('content %s is gone', missing_id);
    END IF;
END $$;

-- Head as [version, revision, at, content, digest, size, type, base, base digest, base size,
-- offset, mode, modification time, file id, reviewed].
CREATE FUNCTION head_to_json(scope_id bigint, entry_path text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_array(e.version, e.revision, e.at, e.content, encode(e.digest, 'hex'),
                             e.size, e.type, e.base, encode(b.digest, 'hex'), b.size,
                             e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed)
      FROM entry AS e LEFT JOIN content AS b ON b.id = e.base
     WHERE e.scope = scope_id AND e.path = entry_path
$$;

-- Named statements. If a key is joined from two tables, OFFSET 0 keeps the planner from using only
-- a part of it and scanning the rest.

-- name: database_encoding
SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database();

-- name: lock_migrations
SELECT pg_advisory_xact_lock(hashtextextended('carrel/migration', 0));

-- name: try_leader_lock
SELECT pg_try_advisory_lock($1);

-- name: check_connection
SELECT true;

-- name: create_migration_table
CREATE TABLE IF NOT EXISTS migration (
    name       text COLLATE "C" PRIMARY KEY,
    checksum   text NOT NULL,
    applied_at bigint NOT NULL
);

-- name: migrations
SELECT name, checksum FROM migration ORDER BY name;

-- name: add_migration
INSERT INTO migration (name, checksum, applied_at) VALUES ($1, $2, $3);

-- name: has_future_events
SELECT EXISTS (SELECT FROM event WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()));

-- name: acquire_locks
SELECT acquire_locks($1::text::bigint[], $2::text::boolean[]);

-- name: acquire_global_lock
SELECT acquire_global_lock();

-- name: reset_event_xids
SELECT acquire_global_lock(), reset_event_xids();

-- name: apply_commits
SELECT * FROM apply_commits(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18::text::bigint[],
    $19::text::boolean[], $20::text::integer[], $21::text::bigint[], $22::text::bigint[],
    $23::text::bigint[], $24::text::bigint[], $25::text::integer[], $26::text::integer[],
    $27::text::integer[], $28::text::integer[], $29::text::integer[], $30::text::integer[],
    $31::text::bigint[], $32::text::boolean[], $33::text::integer[], $34::text::bigint[],
    $35::text::integer[], $36::text::bigint[], $37::text::bigint[], $38::text::integer[],
    $39::text::integer[], $40::text::integer[], $41::text::integer[], $42::text::integer[],
    $43::text::integer[], $44::text::integer[], $45::text::boolean[], $46::text::bigint[],
    $47::text::integer[], $48::text::bigint[]);

-- name: revisions
SELECT coalesce(s.revision, 0)
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w (tenant, kind, name, n)
  LEFT JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
 ORDER BY w.n;

-- name: heads_by_path
SELECT coalesce(s.revision, 0), e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed, (SELECT value FROM counter WHERE name = 'records')
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
    AS w (tenant, kind, name, path, n)
  LEFT JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
  LEFT JOIN LATERAL (
       SELECT * FROM entry AS h WHERE h.scope = s.id AND h.path = w.path OFFSET 0) AS e ON true
  LEFT JOIN content AS b ON b.id = e.base
 ORDER BY w.n;

-- name: heads_by_path_at_revision
SELECT coalesce(w.revision, s.revision, 0), h.version, h.revision, h.at, h.content, h.digest, h.size,
       h.type, h.base, b.digest, b.size, h.version_offset, h.mode, h.mtime_ns, h.file_id, h.reviewed,
       (SELECT value FROM counter WHERE name = 'records')
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
    AS w (tenant, kind, name, path, revision, n)
  LEFT JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
  LEFT JOIN LATERAL (
       SELECT e.version, e.revision, e.at, e.content, e.digest, e.size, e.type, e.base,
              e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed
         FROM entry AS e
        WHERE w.revision IS NULL AND e.scope = s.id AND e.path = w.path
       UNION ALL
       (SELECT v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base,
               v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed
          FROM version AS v
         WHERE v.scope = s.id AND v.path = w.path AND v.revision <= w.revision
         ORDER BY v.version DESC LIMIT 1)) AS h ON true
  LEFT JOIN content AS b ON b.id = h.base
 ORDER BY w.n;

-- name: heads_by_prefix
SELECT w.n, coalesce(w.revision, s.revision, 0), h.path, h.version, h.revision, h.at, h.content,
       h.digest, h.size, h.type, h.base, b.digest, b.size, h.version_offset, h.mode, h.mtime_ns, h.file_id, h.reviewed,
       (SELECT value FROM counter WHERE name = 'records')
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY
    AS w (tenant, kind, name, revision, n)
  LEFT JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
  LEFT JOIN LATERAL (
       SELECT e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type, e.base,
              e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed
         FROM entry AS e
        WHERE e.scope = s.id AND e.path >= $5 AND ($6::text IS NULL OR e.path < $6)
          AND (e.content IS NOT NULL OR e.type = 'inode/directory'
               OR w.kind IN ('agent', 'template', 'defaults'))
          AND (w.revision IS NULL OR e.revision <= w.revision)
       UNION ALL
       SELECT e.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base,
              v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed
         FROM entry AS e
        CROSS JOIN LATERAL (
              SELECT * FROM version AS n
               WHERE n.scope = e.scope AND n.path = e.path AND n.revision <= w.revision
               ORDER BY n.version DESC LIMIT 1) AS v
        WHERE e.scope = s.id AND e.path >= $5 AND ($6::text IS NULL OR e.path < $6)
          AND e.revision > w.revision
          AND (v.content IS NOT NULL OR v.type = 'inode/directory'
               OR w.kind IN ('agent', 'template', 'defaults'))) AS h ON true
  LEFT JOIN content AS b ON b.id = h.base;

-- name: versions
SELECT w.n, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base, b.digest,
       b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason,
       v.run, v.redacted, v.source
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
    AS w (tenant, kind, name, path, version, n)
  JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
 CROSS JOIN LATERAL (
       SELECT * FROM version AS h
        WHERE h.scope = s.id AND h.path = w.path AND h.version = w.version OFFSET 0) AS v
  LEFT JOIN content AS b ON b.id = v.base;

-- name: history
SELECT v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base, b.digest, b.size,
       v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason,
       v.run, v.redacted, v.source
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id AND v.path = $4 AND v.version < $5
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3
 ORDER BY v.version DESC LIMIT $6;

-- name: version_log
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base, b.digest,
       b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason,
       v.run, v.redacted, v.source
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3
   AND (v.revision, v.path, v.version) > ($4, $5, $6)
 ORDER BY v.revision, v.path, v.version LIMIT $7;

-- name: latest_versions
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base, b.digest,
       b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason,
       v.run, v.redacted, v.source
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3
   AND (v.revision, v.path, v.version) < ($4, $5, $6)
 ORDER BY v.revision DESC, v.path DESC, v.version DESC LIMIT $7;

-- name: complete_since
SELECT coalesce(max(v.revision), 0)
  FROM scope AS s JOIN version AS v ON v.scope = s.id AND v.version > 1
 WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3
   AND NOT EXISTS (SELECT FROM version AS p
                    WHERE p.scope = v.scope AND p.path = v.path AND p.version = v.version - 1);

-- name: revision_at
SELECT coalesce(max(v.revision), 0) FROM scope AS s JOIN version AS v ON v.scope = s.id
 WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3 AND v.at <= $4;

-- Paths whose version at a revision was pruned: the one after it lacks the version before it.
-- name: pruned_paths
SELECT n.path
  FROM (SELECT v.scope, v.path, min(v.version) AS version
          FROM scope AS s JOIN version AS v ON v.scope = s.id
         WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3 AND v.revision > $4
         GROUP BY v.scope, v.path) AS n
 WHERE n.version > 1
   AND NOT EXISTS (SELECT FROM version AS p
                    WHERE p.scope = n.scope AND p.path = n.path AND p.version = n.version - 1);

-- Paths of the scopes $1, $2, $3 and, unless $5 is null, of the agents of tenant $4 with this index
-- key (their own files and pins) that may not leave the path $6 free; $7 are the path and its
-- parents. An empty key means all agents and templates. With $8 also possible variants, whose first
-- folder is compared as $9; their rows have no scope.
-- name: occupying_paths
WITH follower AS MATERIALIZED (
    SELECT r.type, r.id, r.body
      FROM index_key AS i
     CROSS JOIN LATERAL (SELECT r.type, r.id, r.body FROM record AS r
                          WHERE r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
                         OFFSET 0) AS r
     WHERE i.tenant = $4 AND i.type = 'agent' AND i.name = $5
     UNION ALL
    SELECT r.type, r.id, r.body FROM record AS r
     WHERE $5::text = '' AND r.tenant = $4 AND r.type IN ('agent', 'template')),
listed_name AS (
    SELECT w.tenant, w.kind, w.name
      FROM unnest($1::text[], $2::text[], $3::text[]) AS w (tenant, kind, name)
    UNION
    SELECT $4, f.type, f.id FROM follower AS f
    UNION
    SELECT $4, 'pins', f.body::jsonb ->> 'pins' FROM follower AS f),
listed_scope AS MATERIALIZED (
    SELECT s.id, s.kind, s.name
      FROM listed_name AS w
     CROSS JOIN LATERAL (SELECT s.id, s.kind, s.name FROM scope AS s
                          WHERE s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
                         OFFSET 0) AS s)
SELECT s.kind, s.name, e.path
  FROM listed_scope AS s
 CROSS JOIN LATERAL (SELECT e.path FROM entry AS e
                      WHERE e.scope = s.id AND e.path = ANY ($7::text[])
                        AND CASE WHEN e.path = $6 THEN e.content IS NULL
                                                   AND e.type = 'inode/directory'
                            ELSE e.content IS NOT NULL END
                     OFFSET 0) AS e
 UNION ALL
SELECT s.kind, s.name, e.path
  FROM listed_scope AS s
 CROSS JOIN LATERAL (SELECT e.path FROM entry AS e
                      WHERE e.scope = s.id
                        AND e.path > $6::text || '/' AND e.path < $6::text || '0'
                        AND (e.content IS NOT NULL OR e.type = 'inode/directory')
                      ORDER BY e.path LIMIT 1) AS e
 UNION ALL
SELECT DISTINCT NULL, NULL, e.path
  FROM listed_scope AS s
 CROSS JOIN LATERAL (SELECT e.path FROM entry AS e
                      WHERE $8 AND e.scope = s.id
                        AND (e.content IS NOT NULL OR e.type = 'inode/directory')
                        AND (rtrim(lower(split_part(e.path, '/', 1) COLLATE "C"), ' .') = $9
                             OR e.path ~ '[^ -~]')
                     OFFSET 0) AS e;

-- Paths, deleted ones included, that changed after a revision. Parameters: scopes and revisions.
-- name: changed_paths
SELECT DISTINCT e.path
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS w (tenant, kind, name, revision)
  JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
                 AND s.revision > w.revision
  JOIN entry AS e ON e.scope = s.id AND e.revision > w.revision;

-- name: blob_bodies
SELECT id, body FROM content WHERE id = ANY ($1::bigint[]);

-- name: blob_part
SELECT substring(body FROM $2 FOR $3) FROM content WHERE id = $1;

-- name: is_external
SELECT body IS NULL FROM content WHERE id = $1;

-- name: put_large_content
WITH stored AS (
    INSERT INTO large_content (digest, size, at) VALUES ($1, $2, $3)
    ON CONFLICT (digest) DO UPDATE SET at = excluded.at, in_trash = false RETURNING id
)
INSERT INTO content_part (content, position, data) SELECT id, 0, $4 FROM stored
ON CONFLICT DO NOTHING;

-- name: renew_large_content
UPDATE large_content SET at = $2, in_trash = false WHERE digest = $1 RETURNING true;

-- name: start_large_content
INSERT INTO large_content (size, at) VALUES ($1, $2) RETURNING id;

-- name: add_content_part
-- A part need not be durable when this returns: the end of the upload comes later in the WAL.
WITH settings AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO content_part (content, position, data)
SELECT c.id, $2, $3 FROM settings CROSS JOIN large_content AS c WHERE c.id = $1;

-- name: finish_large_content
SELECT finish_large_content($1, $2, $3, $4);

-- name: delete_large_content
DELETE FROM large_content WHERE id = $1 AND (in_trash OR digest IS NULL);

-- name: large_content_part
SELECT c.size, p.data
  FROM large_content AS c JOIN content_part AS p ON p.content = c.id AND p.position = $2
 WHERE c.digest = $1;

-- name: large_contents
SELECT digest, size, at FROM large_content
 WHERE digest > $1 AND in_trash = $2 ORDER BY digest LIMIT $3;

-- name: discard_large_contents
UPDATE large_content SET at = $2, in_trash = true WHERE digest = ANY ($1::bytea[]);

-- name: restore_large_contents
UPDATE large_content SET at = $2, in_trash = false WHERE digest = ANY ($1::bytea[]) AND in_trash;

-- name: discarded_large_contents
SELECT id FROM large_content WHERE digest = ANY ($1::bytea[]) AND in_trash;

-- name: unfinished_large_contents
SELECT id FROM large_content WHERE digest IS NULL AND at < $1;

-- name: records
SELECT w.n, r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM unnest($1::text[]) WITH ORDINALITY AS w (id, n)
  JOIN record AS r ON r.tenant = $2 AND r.type = $3 AND r.id = w.id;

-- name: records_by_unique_key
SELECT w.n, r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM unnest($1::text[]) WITH ORDINALITY AS w (name, n)
  JOIN unique_key AS k ON k.name = w.name
  JOIN record AS r ON r.tenant = k.tenant AND r.type = k.type AND r.id = k.id;

-- name: list_records
SELECT tenant, type, id, revision, body, created_at, updated_at FROM record
 WHERE tenant = $1 AND type = $2 AND id > $3 ORDER BY id LIMIT $4;

-- name: list_records_of_all_tenants
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM collection_revision AS c JOIN record AS r ON r.tenant = c.tenant AND r.type = c.type
 WHERE c.type = $1 AND r.id > $2 ORDER BY r.id, r.tenant LIMIT $3;

-- name: count_records
SELECT w.n, count(*) FROM unnest($1::text[]) WITH ORDINALITY AS w (name, n)
  JOIN index_key AS i ON i.tenant = $2 AND i.type = $3 AND i.name = w.name GROUP BY w.n;

-- name: list_records_by_index_key
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM index_key AS i JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
 WHERE i.tenant = $1 AND i.type = $2 AND i.name = $3 AND i.id > $4 ORDER BY i.id LIMIT $5;

-- name: list_records_of_all_tenants_by_index_key
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM collection_revision AS c
  JOIN index_key AS i ON i.tenant = c.tenant AND i.type = c.type AND i.name = $2 AND i.id > $3
  JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
 WHERE c.type = $1 ORDER BY i.id, i.tenant LIMIT $4;

-- name: list_records_by_keys
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM index_key AS i JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
 WHERE i.tenant = $1 AND i.type = $2 AND i.name = $3 AND $4::text > $3 AND i.id > $5
   AND NOT EXISTS (SELECT FROM unnest($6::text[], $7::text[]) AS c (low, high)
        WHERE NOT EXISTS (SELECT FROM index_key AS o
              WHERE o.tenant = $1 AND o.type = $2 AND o.id = i.id
                AND o.name >= c.low AND o.name < c.high))
 ORDER BY i.id LIMIT $8;

-- name: list_records_by_key_ranges
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM (SELECT DISTINCT i.id FROM index_key AS i
         WHERE i.tenant = $1 AND i.type = $2 AND i.name >= $3 AND i.name < $4 AND i.id > $5
           AND NOT EXISTS (SELECT FROM unnest($6::text[], $7::text[]) AS c (low, high)
                WHERE NOT EXISTS (SELECT FROM index_key AS o
                      WHERE o.tenant = $1 AND o.type = $2 AND o.id = i.id
                        AND o.name >= c.low AND o.name < c.high))
         ORDER BY i.id LIMIT $8) AS m
  JOIN record AS r ON r.tenant = $1 AND r.type = $2 AND r.id = m.id
 ORDER BY m.id;

-- name: count_records_by_keys
SELECT count(DISTINCT i.id) FROM index_key AS i
 WHERE i.tenant = $1 AND i.type = $2 AND i.name >= $3 AND i.name < $4
   AND NOT EXISTS (SELECT FROM unnest($5::text[], $6::text[]) AS c (low, high)
        WHERE NOT EXISTS (SELECT FROM index_key AS o
              WHERE o.tenant = $1 AND o.type = $2 AND o.id = i.id
                AND o.name >= c.low AND o.name < c.high));

-- name: count_all_records
SELECT count(*) FROM record WHERE tenant = $1 AND type = $2;

-- name: count_index_keys
SELECT i.name, count(*) FROM index_key AS i
 WHERE i.tenant = $1 AND i.type = $2 AND i.name >= $3 AND i.name < $4
 GROUP BY i.name ORDER BY i.name;

-- name: collection_revisions
SELECT collection_revisions($1, $2);

-- name: records_revision
SELECT value FROM counter WHERE name = 'records';

-- name: mark_used
INSERT INTO key_usage AS u (id, last_used_at) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (id) DO UPDATE SET last_used_at = excluded.last_used_at
 WHERE u.last_used_at < excluded.last_used_at;

-- name: last_used
SELECT w.n, u.last_used_at FROM unnest($1::text[]) WITH ORDINALITY AS w (id, n)
  JOIN key_usage AS u ON u.id = w.id;

-- name: audit_entries
SELECT id, tenant, at, author, reason, subjects, key_id, key_name, action FROM audit
 WHERE tenant = $1 AND at >= $2
   AND (at, id) < (coalesce((SELECT b.at FROM audit AS b WHERE b.id = $4), $3), $4)
 ORDER BY at DESC, id DESC LIMIT $5;

-- name: audit_entries_by_keys
SELECT a.id, a.tenant, a.at, a.author, a.reason, a.subjects, a.key_id, a.key_name, a.action
  FROM audit_key AS k JOIN audit AS a ON a.id = k.audit
 WHERE k.tenant = $1 AND k.name = $5 AND k.at >= $2
   AND (k.at, k.audit) < (coalesce((SELECT b.at FROM audit AS b WHERE b.id = $4), $3), $4)
   AND NOT EXISTS (SELECT FROM unnest($6::text[]) AS c (name)
        WHERE NOT EXISTS (SELECT FROM audit_key AS o
              WHERE o.tenant = $1 AND o.name = c.name AND o.at = k.at AND o.audit = k.audit))
 ORDER BY k.at DESC, k.audit DESC LIMIT $7;

-- name: count_audit_entries
SELECT count(*) FROM audit WHERE tenant = $1 AND at >= $2 AND at < $3;

-- name: count_audit_entries_by_keys
SELECT count(*) FROM audit_key AS k
 WHERE k.tenant = $1 AND k.name = $4 AND k.at >= $2 AND k.at < $3
   AND NOT EXISTS (SELECT FROM unnest($5::text[]) AS c (name)
        WHERE NOT EXISTS (SELECT FROM audit_key AS o
              WHERE o.tenant = $1 AND o.name = c.name AND o.at = k.at AND o.audit = k.audit));

-- name: audit_entries_of_commits
SELECT w.n, a.id, a.tenant, a.at, a.author, a.reason, a.subjects, a.key_id, a.key_name,
       a.action
  FROM unnest($2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS w (at, author, reason, n)
 CROSS JOIN LATERAL (
       SELECT * FROM audit AS b
        WHERE b.tenant = $1 AND b.at = w.at AND b.author = w.author AND b.reason = w.reason
        ORDER BY b.id LIMIT 1) AS a;

-- name: start_runs
WITH marked AS (
    UPDATE idempotency_key SET versions = $28 WHERE tenant = $25 AND endpoint = $26 AND key = $27
)
SELECT start_runs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                  $19, $20, $21, $22, $23, $24);

-- name: update_run
SELECT update_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);

-- name: report_runs
UPDATE run SET reported_at = $3
 WHERE id = ANY ($2::text[]) AND tenant = $1 AND reported_at < $3;

-- name: unreported_runs
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author,
       r.started_at, r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision)
                         ORDER BY l.position)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM run AS r JOIN scope AS s ON s.id = r.scope
 WHERE r.status = 'running' AND r.reported_at < $1
 ORDER BY r.reported_at LIMIT $2;

-- name: runs
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author,
       r.started_at, r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision)
                         ORDER BY l.position)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM unnest($2::text[]) AS w (id)
  JOIN run AS r ON r.id = w.id AND r.tenant = $1
  JOIN scope AS s ON s.id = r.scope;

-- name: list_runs
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author,
       r.started_at, r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision)
                         ORDER BY l.position)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM run AS r JOIN scope AS s ON s.id = r.scope
 WHERE r.tenant = $1 AND r.id >= $2 AND r.id < $3
 ORDER BY r.id DESC LIMIT $4;

-- name: list_runs_by_status
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author,
       r.started_at, r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision)
                         ORDER BY l.position)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM run AS r JOIN scope AS s ON s.id = r.scope
 WHERE r.tenant = $1 AND r.id >= $2 AND r.id < $3 AND r.status = $4
 ORDER BY r.id DESC LIMIT $5;

-- name: list_runs_of_scope
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author,
       r.started_at, r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision)
                         ORDER BY l.position)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM scope AS s JOIN run AS r ON r.scope = s.id
 WHERE s.tenant = $4 AND s.kind = $5 AND s.name = $6
   AND r.tenant = $1 AND r.id >= $2 AND r.id < $3
   AND ($7::text IS NULL OR r.session = $7) AND ($8::text IS NULL OR r.status = $8)
 ORDER BY r.id DESC LIMIT $9;

-- name: count_runs
SELECT count(*) FROM run AS r
 WHERE r.tenant = $1 AND r.id >= $2 AND r.id < $3;

-- name: count_runs_by_status
SELECT count(*) FROM run AS r
 WHERE r.tenant = $1 AND r.id >= $2 AND r.id < $3 AND r.status = $4;

-- name: count_runs_of_scope
SELECT count(*) FROM scope AS s JOIN run AS r ON r.scope = s.id
 WHERE s.tenant = $4 AND s.kind = $5 AND s.name = $6
   AND r.tenant = $1 AND r.id >= $2 AND r.id < $3
   AND ($7::text IS NULL OR r.session = $7) AND ($8::text IS NULL OR r.status = $8);

-- name: runs_with_layer
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author,
       r.started_at, r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision)
                         ORDER BY l.position)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM scope AS w
  JOIN run_layer AS k ON k.scope = w.id AND k.revision >= $4 AND k.revision < $5
  JOIN run AS r ON r.id = k.run AND r.tenant = $1
  JOIN scope AS s ON s.id = r.scope
 WHERE w.tenant = $1 AND w.kind = $2 AND w.name = $3 AND ($6::text IS NULL OR r.id < $6)
   AND ($8::text IS NULL OR (s.kind = $8 AND s.name = $9))
 ORDER BY r.id DESC LIMIT $7;

-- name: newest_runs
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author,
       r.started_at, r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision)
                         ORDER BY l.position)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM unnest($2::text[], $3::text[], $4::text[]) AS w (tenant, kind, name)
  JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
 CROSS JOIN LATERAL (
       SELECT * FROM run AS n WHERE n.scope = s.id AND n.tenant = $1
        ORDER BY n.id DESC LIMIT 1) AS r;

-- name: events_after
SELECT * FROM events_after($1::text::xid8, $2, $3, $4, $5, $6, $7, $8);

-- name: latest_tenant_event
SELECT xid::text, id FROM event WHERE tenant = $1 AND xid < event_horizon()
 ORDER BY xid DESC, id DESC LIMIT 1;

-- name: latest_event
SELECT event_horizon()::text, (SELECT last_value FROM event_id_seq);

-- name: claim_idempotency_key
SELECT * FROM claim_idempotency_key($1, $2, $3, $4, $5, $6);

-- name: complete_idempotency_key
UPDATE idempotency_key SET status = $4, sealed = $5
 WHERE tenant = $1 AND endpoint = $2 AND key = $3 AND status IS NULL;

-- name: unmark_idempotency_key
UPDATE idempotency_key SET versions = NULL
 WHERE tenant = $1 AND endpoint = $2 AND key = $3 AND status IS NULL;

-- name: release_idempotency_key
DELETE FROM idempotency_key
 WHERE tenant = $1 AND endpoint = $2 AND key = $3 AND versions IS NULL AND status IS NULL;

-- name: delivery_cursor
SELECT cursor FROM delivery_cursor WHERE name = 'deliveries';

-- name: enqueue_deliveries
SELECT enqueue_deliveries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: lease_deliveries
WITH due AS (
    SELECT d.id, d.due_at FROM delivery AS d WHERE d.state = 'pending' AND d.due_at <= $1
     ORDER BY d.due_at, d.id LIMIT $3 FOR UPDATE SKIP LOCKED
), leased AS (
    UPDATE delivery AS d SET due_at = $2 FROM due WHERE d.id = due.id
    RETURNING d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created_at, d.due_at,
              d.attempts, due.due_at AS previous_due_at
)
SELECT id, tenant, webhook, type, body, state, created_at, due_at, attempts FROM leased
 ORDER BY previous_due_at, id;

-- name: record_attempts
SELECT record_attempts($1, $2, $3, $4, $5, $6, $7, $8);

-- name: deliveries
SELECT d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created_at, d.due_at, d.attempts
  FROM unnest($2::text[]) AS w (id) JOIN delivery AS d ON d.id = w.id AND d.tenant = $1;

-- name: list_deliveries
SELECT d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created_at, d.due_at, d.attempts,
       (SELECT jsonb_agg(jsonb_build_array(a.at, a.status, a.problem, a.elapsed_ms)
                         ORDER BY a.position)
          FROM attempt AS a WHERE a.delivery = d.id)
  FROM delivery AS d
 WHERE d.tenant = $1 AND d.webhook = $2 AND ($3::text IS NULL OR d.id < $3)
 ORDER BY d.id DESC LIMIT $4;

-- name: count_deliveries
SELECT count(*) FROM delivery WHERE tenant = $1 AND webhook = $2;

-- name: replay_delivery
WITH marked AS (
    UPDATE idempotency_key SET versions = $7 WHERE tenant = $4 AND endpoint = $5 AND key = $6
)
UPDATE delivery SET state = 'pending', due_at = $3, attempts = 0 WHERE id = $1 AND tenant = $2;

-- name: ping
SELECT 1;

-- name: is_read_only
SELECT current_setting('transaction_read_only')::boolean;

-- name: probe_write
UPDATE counter SET value = value WHERE name = 'records';

-- name: is_empty
SELECT NOT EXISTS (SELECT FROM scope) AND NOT EXISTS (SELECT FROM record)
   AND NOT EXISTS (SELECT FROM event) AND NOT EXISTS (SELECT FROM content);

-- name: snapshot_counter
SELECT name, CASE name WHEN 'content' THEN greatest(value, (SELECT max(id) FROM content))
                       WHEN 'event' THEN max_event_id() ELSE value END
  FROM counter WHERE name <> 'restored_event' ORDER BY name;

-- name: snapshot_delivery_cursor
SELECT name, delivery_cursor_event_id(cursor)::text FROM delivery_cursor ORDER BY name;

-- name: prunable_scopes
SELECT s.id, s.tenant, s.kind, s.name, k.max_versions
  FROM scope AS s
  LEFT JOIN unnest($1::text[], $2::bigint[], $3::bigint[])
    AS p (tenant, max_versions, shared_max_versions) ON p.tenant = s.tenant
 CROSS JOIN LATERAL (
       SELECT coalesce(CASE WHEN s.kind = 'workspace' AND starts_with(s.name, 'ws_')
                            THEN p.shared_max_versions ELSE p.max_versions END, 100)) AS k (max_versions)
 WHERE EXISTS (SELECT FROM entry AS e JOIN version AS v ON v.scope = e.scope AND v.path = e.path
                WHERE e.scope = s.id AND e.version > k.max_versions
                  AND v.version <= e.version - k.max_versions);

-- name: prune_versions
SELECT prune_versions($1, $2, $3);

-- name: policies
SELECT tenant, body FROM record WHERE type = 'policy' AND id = 'policy';

-- name: unreferenced_contents
SELECT c.id FROM content AS c
 WHERE c.id > $1 AND c.created_at < $2
   AND NOT EXISTS (SELECT FROM version AS v WHERE v.content = c.id)
   AND NOT EXISTS (SELECT FROM version AS v WHERE v.base = c.id)
 ORDER BY c.id LIMIT $3;

-- name: delete_contents
SELECT delete_contents($1, $2);

-- name: delete_expired_idempotency_keys
WITH deleted AS (DELETE FROM idempotency_key WHERE claimed_at < $1 RETURNING 1)
SELECT count(*) FROM deleted;

-- name: delete_old_attempts
WITH deleted AS (
    DELETE FROM attempt AS a USING delivery AS d
     WHERE d.id = a.delivery AND d.state <> 'pending' AND d.created_at < $1 RETURNING 1
)
SELECT count(*) FROM deleted;

-- name: delete_old_deliveries
WITH deleted AS (
    DELETE FROM delivery WHERE state <> 'pending' AND created_at < $1 RETURNING 1
)
SELECT count(*) FROM deleted;

-- name: delete_expired_events
WITH deleted AS (
    DELETE FROM event AS e USING delivery_cursor AS c
     WHERE c.name = 'deliveries' AND e.at < $1
       AND (e.xid, e.id) <= (split_part(c.cursor, '.', 1)::xid8,
                             split_part(c.cursor, '.', 2)::bigint)
       AND NOT EXISTS (SELECT FROM run AS r WHERE r.id = e.run AND r.snapshot_kept = 1)
    RETURNING e.id
), updated_counter AS (
    UPDATE counter SET value = greatest(value, (SELECT max(id) FROM deleted)) WHERE name = 'event'
)
SELECT count(*) FROM deleted;

-- name: external_digests
SELECT DISTINCT digest FROM content WHERE body IS NULL;

-- name: restore_counter
INSERT INTO counter (name, value) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: begin_restore
ALTER TABLE event ALTER COLUMN xid SET DEFAULT '0';

-- name: end_restore
ALTER TABLE event ALTER COLUMN xid SET DEFAULT pg_current_xact_id();

-- name: advance_id_sequences
SELECT advance_id_sequences();

-- name: restore_delivery_cursor
UPDATE delivery_cursor SET cursor = '0.' || cursor;

-- name: set_restored_event
UPDATE counter SET value = max_event_id() WHERE name = 'restored_event';

-- name: start_sessions
WITH created AS (
    INSERT INTO session (tenant, id, agent, mode, plugin, started_at, ended_at, run, entry_count,
                         last_sequence, last_entry_at)
    SELECT n.*, 0, 0, n.started_at
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[],
                  $7::bigint[], $8::text[])
        AS n (tenant, id, agent, mode, plugin, started_at, ended_at, run)
     ORDER BY 1, 3, 2
    ON CONFLICT DO NOTHING RETURNING 1
)
UPDATE idempotency_key
   SET versions = (jsonb_build_array((SELECT count(*) FROM created)) || $12::jsonb)::text
 WHERE tenant = $9 AND endpoint = $10 AND key = $11;

-- name: sessions
SELECT s.tenant, s.id, s.agent, s.mode, s.plugin, s.started_at, s.ended_at, s.entry_count,
       s.last_sequence, s.last_entry_at, s.run
  FROM unnest($1::text[], $2::text[], $3::text[]) AS w (tenant, agent, id)
  JOIN session AS s ON s.tenant = w.tenant AND s.agent = w.agent AND s.id = w.id;

-- name: append_session_entries
SELECT a.addition, (a.updated).tenant, (a.updated).id, (a.updated).agent, (a.updated).mode,
       (a.updated).plugin, (a.updated).started_at, (a.updated).ended_at, (a.updated).entry_count,
       (a.updated).last_sequence, (a.updated).last_entry_at, (a.updated).run, a.changed_last
  FROM append_session_entries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
                              $16) AS a;

-- name: remove_session_entries
SELECT a.removal, (a.updated).tenant, (a.updated).id, (a.updated).agent, (a.updated).mode,
       (a.updated).plugin, (a.updated).started_at, (a.updated).ended_at, (a.updated).entry_count,
       (a.updated).last_sequence, (a.updated).last_entry_at, (a.updated).run,
       a.number, a.at, a.role, a.content, a.message, a.plugin, a.sender, a.item, a.run
  FROM remove_session_entries($1, $2, $3, $4, $5, $6, $7) AS a;

-- name: set_session_runs
UPDATE session AS s SET run = w.run
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS w (tenant, agent, id, run)
 WHERE s.tenant = w.tenant AND s.agent = w.agent AND s.id = w.id;

-- name: close_sessions
UPDATE session SET ended_at = $4
 WHERE tenant = $1 AND id = ANY ($3::text[]) AND agent = $2 AND ended_at IS NULL;

-- name: count_sessions
SELECT w.n, (SELECT count(*) FROM session AS s WHERE s.tenant = $2 AND s.agent = w.agent
                AND ($3::text IS NULL OR s.mode = $3))
  FROM unnest($1::text[]) WITH ORDINALITY AS w (agent, n) ORDER BY w.n;

-- name: list_sessions
SELECT tenant, id, agent, mode, plugin, started_at, ended_at, entry_count, last_sequence,
       last_entry_at, run
  FROM session
 WHERE tenant = $1 AND agent = $2 AND (last_entry_at, id) < ($3, $4)
   AND ($5::text IS NULL OR mode = $5)
 ORDER BY last_entry_at DESC, id DESC LIMIT $6;

-- name: session_entries
SELECT sequence, at, role, content, message, plugin, sender, item, run
  FROM (SELECT e.*, sum(octet_length(e.content) + coalesce(octet_length(e.item), 0))
                    OVER (ORDER BY e.sequence)
                    - octet_length(e.content) - coalesce(octet_length(e.item), 0) AS before
          FROM (SELECT * FROM session_entry
                 WHERE tenant = $1 AND agent = $2 AND session = $3 AND sequence > $4
                 ORDER BY sequence LIMIT $5) AS e
       ) AS x
 WHERE before < $6 ORDER BY sequence;

-- name: latest_session_entries
SELECT sequence, at, role, content, message, plugin, sender, item, run
  FROM (SELECT e.*, sum(octet_length(e.content) + coalesce(octet_length(e.item), 0))
                    OVER (ORDER BY e.sequence DESC)
                    - octet_length(e.content) - coalesce(octet_length(e.item), 0) AS before
          FROM (SELECT * FROM session_entry
                 WHERE tenant = $1 AND agent = $2 AND session = $3 AND sequence < $4
                 ORDER BY sequence DESC LIMIT $5) AS e
       ) AS x
 WHERE before < $6 ORDER BY sequence DESC;

-- name: session_entries_of_run
SELECT session, sequence, at, role, content, message, plugin, sender, item, run
  FROM (SELECT e.*, sum(octet_length(e.content) + coalesce(octet_length(e.item), 0))
                    OVER (ORDER BY e.at, e.session, e.sequence)
                    - octet_length(e.content) - coalesce(octet_length(e.item), 0) AS before
          FROM (SELECT * FROM session_entry
                 WHERE tenant = $1 AND agent = $2 AND run = $3 AND (at, session, sequence) > ($4, $5, $6)
                 ORDER BY at, session, sequence LIMIT $7) AS e
       ) AS x
 WHERE before < $8 ORDER BY at, session, sequence;

-- name: count_session_entries_by_agent
SELECT coalesce(sum(entry_count), 0)::bigint FROM session WHERE tenant = $1 AND agent = $2;

-- name: count_session_entry_terms
SELECT q.term,
       (SELECT count(*) FROM (SELECT 1 FROM session_entry_text AS t
         WHERE t.terms @@ q.exact::tsquery LIMIT $4) AS x),
       (SELECT count(*) FROM (SELECT 1 FROM session_entry_text AS t
         WHERE t.terms @@ q.prefixed::tsquery LIMIT $4) AS x)
  FROM unnest($1::text[], $2::text[], $3::text[]) AS q (term, exact, prefixed);

-- name: search_session_entries
WITH hit AS (
    SELECT e.tenant, e.agent, e.session, e.sequence, e.at, sum(q.weight) AS weight
      FROM unnest($1::text[], $2::integer[]) AS q (query, weight)
      JOIN session_entry_text AS t ON t.terms @@ q.query::tsquery
      JOIN session_entry AS e ON e.tenant = t.tenant AND e.agent = t.agent
                             AND e.session = t.session AND e.sequence = t.sequence
      JOIN session AS s ON s.tenant = e.tenant AND s.agent = e.agent AND s.id = e.session
     WHERE s.tenant = $3 AND s.agent = $4 AND ($5::text IS NULL OR s.mode = $5)
     GROUP BY e.tenant, e.agent, e.session, e.sequence, e.at
     ORDER BY weight DESC, e.at DESC, e.session DESC, e.sequence DESC LIMIT $6
)
SELECT session, sequence, at, role, content, message, plugin, sender, item, run
  FROM (SELECT e.*, h.weight,
               sum(octet_length(e.content) + coalesce(octet_length(e.item), 0))
                   OVER (ORDER BY h.weight DESC, e.at DESC, e.session DESC, e.sequence DESC)
               - octet_length(e.content) - coalesce(octet_length(e.item), 0) AS before
          FROM hit AS h JOIN session_entry AS e ON e.tenant = h.tenant AND e.agent = h.agent
                                               AND e.session = h.session
                                               AND e.sequence = h.sequence
       ) AS x
 WHERE before < $7 ORDER BY weight DESC, at DESC, session DESC, sequence DESC;

-- name: list_updated_sessions
SELECT tenant, id, agent, mode, plugin, started_at, ended_at, entry_count, last_sequence,
       last_entry_at, run
  FROM session WHERE last_entry_at >= $1 AND (last_entry_at, tenant, agent, id) > ($2, $3, $4, $5)
 ORDER BY last_entry_at, tenant, agent, id LIMIT $6;

-- name: delete_sessions
SELECT delete_sessions($1, $2, $3, $4, $5);

-- name: delete_all_session_entry_terms
TRUNCATE session_entry_text;

-- name: count_session_entries
SELECT count(*) FROM session_entry;

-- name: session_entries_to_index
SELECT e.tenant, e.agent, e.session, e.sequence, e.content,
       EXISTS (SELECT FROM session_entry_text AS t
                WHERE t.tenant = e.tenant AND t.agent = e.agent AND t.session = e.session
                  AND t.sequence = e.sequence)
  FROM session_entry AS e
 WHERE (e.tenant, e.agent, e.session, e.sequence) > ($1, $2, $3, $4)
 ORDER BY e.tenant, e.agent, e.session, e.sequence LIMIT $5;

-- name: add_session_entry_terms
INSERT INTO session_entry_text (tenant, agent, session, sequence, terms)
SELECT e.tenant, e.agent, e.session, e.sequence, w.terms::tsvector
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    AS w (tenant, agent, session, sequence, terms)
  JOIN session_entry AS e ON e.tenant = w.tenant AND e.agent = w.agent AND e.session = w.session
                         AND e.sequence = w.sequence
ON CONFLICT DO NOTHING;

-- name: count_record_terms
SELECT q.term,
       (SELECT count(*) FROM (SELECT 1 FROM search_term AS t
         WHERE t.tenant = $3 AND t.type = $4 AND t.index_key = $5 AND t.term = q.term
         LIMIT $6) AS x),
       (SELECT count(*) FROM (SELECT 1 FROM search_term AS t
         WHERE t.tenant = $3 AND t.type = $4 AND t.index_key = $5
           AND t.term >= q.term AND t.term < q.upper_bound LIMIT $6) AS x)
  FROM unnest($1::text[], $2::text[]) AS q (term, upper_bound);

-- name: record_ids_by_terms
-- OFFSET 0 keeps the planner from scanning all terms of the collection once.
SELECT id
  FROM (SELECT t.id, max(CASE WHEN t.term = q.term THEN q.exact ELSE q.prefix END) AS weight
          FROM unnest($1::text[], $2::text[], $3::integer[], $4::integer[]) WITH ORDINALITY
            AS q (term, upper_bound, exact, prefix, n)
         CROSS JOIN LATERAL (
               SELECT s.id, s.term FROM search_term AS s
                WHERE s.tenant = $5 AND s.type = $6 AND s.index_key = $7
                  AND s.term >= q.term AND s.term < q.upper_bound OFFSET 0) AS t
         GROUP BY t.id, q.n) AS x
 GROUP BY id ORDER BY sum(weight) DESC, id DESC LIMIT $8;

-- name: add_recalls
INSERT INTO recall (tenant, agent, memory, id, query, score, at)
SELECT $1, n.agent, n.memory, n.id, n.query, n.score, n.at
  FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::double precision[], $7::bigint[])
    AS n (agent, memory, id, query, score, at)
ON CONFLICT DO NOTHING;

-- name: recall_stats
SELECT memory, count(*) AS hits, avg(score), count(DISTINCT query),
       count(DISTINCT at / 86400000), max(at)
  FROM recall WHERE tenant = $1 AND agent = $2 AND score >= $4
 GROUP BY memory ORDER BY hits DESC, memory LIMIT $3;

-- name: recall_counts_since
SELECT memory, count(*) FROM recall WHERE tenant = $1 AND agent = $2 AND at >= $3 GROUP BY memory;

-- name: delete_recalls
WITH deleted AS (
    DELETE FROM recall WHERE tenant = $1 AND agent = $2 AND memory = ANY ($3::text[]) AND at < $4
    RETURNING 1
)
SELECT count(*) FROM deleted;

-- name: prune_recalls
WITH deleted AS (DELETE FROM recall WHERE tenant = $1 AND agent = $2 AND at < $3 RETURNING 1)
SELECT count(*) FROM deleted;

-- name: index_keys_with_bodies
SELECT i.tenant, i.type, i.name, i.id, r.body
  FROM index_key AS i JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
 WHERE i.type = $1;

-- name: delete_all_search_terms
DELETE FROM search_term;

-- name: scope_id
SELECT id FROM scope WHERE tenant = $1 AND kind = $2 AND name = $3;

-- name: lock_scope
SELECT acquire_locks(ARRAY[$1::bigint], ARRAY[true]);

-- name: contents_of_scope
SELECT content FROM version WHERE scope = $1 AND content IS NOT NULL
UNION SELECT base FROM version WHERE scope = $1 AND base IS NOT NULL;

-- name: erase_run_events
DELETE FROM event WHERE run IN (SELECT id FROM run WHERE scope = $1);

-- name: erase_run_layers
DELETE FROM run_layer WHERE run IN (SELECT id FROM run WHERE scope = $1);

-- name: release_runs
UPDATE run SET status = CASE status WHEN 'running' THEN 'cancelled' ELSE status END,
       ended_at = coalesce(ended_at, $2), snapshot_kept = 0, variables = '{}',
       workflow = '', session = NULL, reason = NULL, prompt = NULL
 WHERE scope = $1;

-- name: erase_entries
DELETE FROM entry WHERE scope = $1;

-- name: erase_versions
WITH deleted AS (DELETE FROM version WHERE scope = $1 RETURNING 1) SELECT count(*) FROM deleted;

-- name: empty_scope
UPDATE scope SET revision = revision + 1, files = 0, size = 0 WHERE id = $1;

-- name: orphans
SELECT o.tenant, o.agent
  FROM (SELECT s.tenant, s.name AS agent FROM scope AS s
         WHERE s.kind = 'agent' AND EXISTS (SELECT FROM entry AS e WHERE e.scope = s.id)
        UNION SELECT s.tenant, s.agent FROM session AS s) AS o
 WHERE NOT EXISTS (SELECT FROM record AS r
                    WHERE r.tenant = o.tenant AND r.type = 'agent' AND r.id = o.agent)
   AND EXISTS (SELECT FROM audit AS a
                WHERE a.tenant = o.tenant AND a.reason = 'delete an agent'
                  AND position('"agent/' || o.agent || '"' IN a.subjects::text) > 0);

-- name: stored_versions
SELECT s.tenant, s.kind, s.name, e.version = v.version, v.scope, v.path, v.version, v.revision,
       v.at, v.content, v.digest, v.size, v.type, v.base, b.digest, b.size, v.version_offset,
       v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason, v.run, v.redacted, v.source
  FROM version AS v
  JOIN scope AS s ON s.id = v.scope
  JOIN entry AS e ON e.scope = v.scope AND e.path = v.path
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = $1 AND (v.scope, v.path, v.version) > ($2, $3, $4)
 ORDER BY v.scope, v.path, v.version LIMIT $5;

-- name: stored_records
SELECT tenant, type, id, revision, body, created_at, updated_at,
       ARRAY(SELECT k.name FROM unique_key AS k
              WHERE k.tenant = r.tenant AND k.type = r.type AND k.id = r.id),
       ARRAY(SELECT k.name FROM index_key AS k
              WHERE k.tenant = r.tenant AND k.type = r.type AND k.id = r.id)
  FROM record AS r WHERE tenant = $1 AND (type, id) > ($2, $3) ORDER BY type, id LIMIT $4;

-- name: version_contents
SELECT content, digest, base FROM version
 WHERE scope = $1 AND path = $2 AND version = $3
   AND version < (SELECT e.version FROM entry AS e WHERE e.scope = $1 AND e.path = $2);

-- name: add_content
INSERT INTO content (digest, size, created_at, body) VALUES ($1, $2, $3, $4) RETURNING id;

-- name: replace_version
UPDATE version SET content = $4, digest = $5, size = $6, base = $7, type = $8,
       redacted = greatest(redacted, $9)
 WHERE scope = $1 AND path = $2 AND version = $3;

-- name: raise_scope_revision
UPDATE scope SET revision = revision + 1 WHERE id = $1;

-- name: contents_of_deleted_path
SELECT v.content, v.base FROM entry AS e JOIN version AS v ON v.scope = e.scope AND v.path = e.path
 WHERE e.scope = $1 AND e.path = $2 AND e.content IS NULL;

-- name: begin_path_erasure
SELECT set_config('carrel.erases', 'on', true);

-- name: erase_path_versions
DELETE FROM version WHERE scope = $1 AND path = $2;

-- name: erase_source_path
UPDATE version SET source = NULL
 WHERE scope = $1 AND source IS NOT NULL AND source::jsonb ->> 2 = $2;

-- name: erase_path_entry
DELETE FROM entry WHERE scope = $1 AND path = $2;

-- name: external_contents
SELECT DISTINCT digest FROM content WHERE body IS NULL AND id = ANY ($1);

-- name: external_among
SELECT DISTINCT digest FROM content WHERE body IS NULL AND digest = ANY ($1);

-- name: unreferenced_bodies
SELECT id, body FROM content AS c
 WHERE id > $1 AND body IS NOT NULL
   AND NOT EXISTS (SELECT FROM version AS v WHERE v.content = c.id)
   AND NOT EXISTS (SELECT FROM version AS v WHERE v.base = c.id)
 ORDER BY id LIMIT $2;

-- name: rename_session
WITH entries AS (
    UPDATE session_entry SET session = $4 WHERE tenant = $1 AND agent = $2 AND session = $3
), terms AS (
    UPDATE session_entry_text SET session = $4 WHERE tenant = $1 AND agent = $2 AND session = $3
)
UPDATE run AS r SET session = $4 FROM scope AS s
 WHERE s.tenant = $1 AND s.kind = 'agent' AND s.name = $2 AND r.scope = s.id AND r.session = $3;

-- name: replace_session_entry_terms
UPDATE session_entry_text SET terms = $5::text::tsvector
 WHERE tenant = $1 AND agent = $2 AND session = $3 AND sequence = $4;

-- name: record_prompts
UPDATE run AS r SET prompt = n.prompt FROM unnest($1::text[], $2::text[], $3::text[])
    AS n (prompt, tenant, id)
 WHERE r.id = n.id AND r.tenant = n.tenant AND r.prompt IS NULL AND r.snapshot_kept = 1;

-- name: tallies_of_names
SELECT t.name, t.key, t.value FROM tally AS t
 WHERE t.tenant = $1 AND t.kind = $2 AND t.name = ANY($3::text[]);

-- name: tallies_since
SELECT name, key, value FROM tally WHERE tenant = $1 AND kind = $2 AND name >= $3;

-- name: tally_total
SELECT coalesce(sum(value), 0)::bigint FROM tally WHERE tenant = $1 AND kind = $2 AND name < $3;

-- name: wrong_tallies
SELECT tenant, kind, name, sum(kept)::bigint, sum(counted)::bigint
  FROM (SELECT tenant, kind, name, key, value AS kept, 0 AS counted FROM tally
         UNION ALL
        SELECT tenant, kind, name, key, 0, value FROM count_everything) AS c
 GROUP BY tenant, kind, name, key HAVING sum(kept) <> sum(counted)
 ORDER BY 1, 2, 3 LIMIT $1;

-- name: lock_tallies
LOCK TABLE tally IN EXCLUSIVE MODE;

-- name: delete_tallies
DELETE FROM tally;

-- name: rebuild_tallies
INSERT INTO tally (tenant, kind, name, key, value)
SELECT tenant, kind, name, key, value FROM count_everything WHERE value <> 0;

-- name: tallies_of_agents
WITH asked AS (SELECT $1::text AS tenant, $2::text AS kind)
SELECT n.name, n.key, sum(n.value)::bigint FROM (
    SELECT lpad((r.started_at / 3600000)::text, 8, '0') AS name, r.status AS key, 1 AS value
      FROM asked AS a JOIN scope AS s ON s.tenant = a.tenant AND s.kind = 'agent'
                                     AND s.name = ANY($3::text[])
      JOIN run AS r ON r.scope = s.id
     WHERE a.kind = 'runs'
     UNION ALL
    SELECT lpad((r.started_at / 86400000)::text, 6, '0'), p.key, p.value::bigint
      FROM asked AS a JOIN scope AS s ON s.tenant = a.tenant AND s.kind = 'agent'
                                     AND s.name = ANY($3::text[])
      JOIN run AS r ON r.scope = s.id,
           jsonb_each_text(coalesce(r.prompt, '{}')::jsonb) AS p (key, value)
     WHERE a.kind = 'prompts'
     UNION ALL
    SELECT lpad((r.created_at / 86400000)::text, 6, '0'), '', 1
      FROM asked AS a JOIN unnest($3::text[]) AS w (agent) ON true
      JOIN index_key AS i ON i.tenant = a.tenant AND i.type = a.kind
                         AND i.name = 'agent:' || w.agent
      JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
     WHERE a.kind IN ('memory', 'promotion')
) AS n WHERE n.name >= $4 GROUP BY n.name, n.key;

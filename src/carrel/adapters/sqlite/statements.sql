-- name: counters
SELECT 'content' AS name,
       max(coalesce((SELECT max(id) FROM content), 0),
           coalesce((SELECT value FROM counter WHERE name = 'content'), 0)) AS value
UNION ALL
SELECT 'scope', coalesce((SELECT max(id) FROM scope), 0)
UNION ALL
SELECT 'event',
       max(coalesce((SELECT max(id) FROM event), 0),
           coalesce((SELECT value FROM counter WHERE name = 'event'), 0))
UNION ALL
SELECT name, value FROM counter WHERE name = 'records';

-- name: set_counter
INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value;

-- name: records_revision
SELECT value FROM counter WHERE name = 'records';

-- name: scope
SELECT id, revision, files, size FROM scope WHERE tenant = ? AND kind = ? AND name = ?;

-- name: scopes
SELECT w.key, s.id, s.revision, s.files, s.size
  FROM json_each(?) AS w
  CROSS JOIN scope AS s ON s.tenant = w.value ->> 0 AND s.kind = w.value ->> 1 AND s.name = w.value ->> 2;

-- name: add_scope
INSERT INTO scope (id, tenant, kind, name, revision, files, size) VALUES (?, ?, ?, ?, 0, 0, 0);

-- name: update_scope
UPDATE scope SET revision = ?, files = ?, size = ? WHERE id = ?;

-- name: head
SELECT e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed
  FROM entry AS e LEFT JOIN content AS b ON b.id = e.base
 WHERE e.scope = ? AND e.path = ?;

-- name: heads_below_path
SELECT path FROM entry WHERE scope = ? AND path > ? AND path < ?
   AND (content IS NOT NULL OR type = 'inode/directory')
 ORDER BY path;

-- Paths of scopes and, if an index key is given, of the agents with it (their own files and pins)
-- that may not leave a path free. An empty key means all agents and templates. Parameters: scopes,
-- tenant, index key or null, path, the path and its parents, whether to list possible variants too,
-- first folder of the path as other file systems compare it. Rows of variants have no scope.
-- name: occupying_paths
WITH follower AS (
    SELECT r.type, r.id, r.body ->> 'pins' AS pins
      FROM index_key AS i
     CROSS JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
     WHERE i.tenant = ?2 AND i.type = 'agent' AND i.name = ?3
     UNION ALL
    SELECT r.type, r.id, r.body ->> 'pins' FROM record AS r
     WHERE ?3 = '' AND r.tenant = ?2 AND r.type IN ('agent', 'template')),
listed_scope AS MATERIALIZED (
    SELECT s.id, s.kind, s.name FROM json_each(?1) AS w
     CROSS JOIN scope AS s ON s.tenant = w.value ->> 0 AND s.kind = w.value ->> 1
                          AND s.name = w.value ->> 2
    UNION
    SELECT s.id, s.kind, s.name FROM follower AS f
     CROSS JOIN scope AS s ON s.tenant = ?2 AND s.kind = f.type AND s.name = f.id
    UNION
    SELECT s.id, s.kind, s.name FROM (SELECT DISTINCT pins FROM follower) AS f
     CROSS JOIN scope AS s ON s.tenant = ?2 AND s.kind = 'pins' AND s.name = f.pins)
SELECT s.kind, s.name, e.path
  FROM listed_scope AS s CROSS JOIN json_each(?5) AS p
 CROSS JOIN entry AS e ON e.scope = s.id AND e.path = p.value
 WHERE iif(e.path = ?4, e.content IS NULL AND e.type = 'inode/directory', e.content IS NOT NULL)
 UNION ALL
SELECT s.kind, s.name, e.path
  FROM listed_scope AS s
 CROSS JOIN entry AS e ON e.scope = s.id AND e.path > ?4 || '/' AND e.path < ?4 || '0'
 WHERE e.content IS NOT NULL OR e.type = 'inode/directory'
 UNION ALL
SELECT DISTINCT NULL, NULL, e.path
  FROM listed_scope AS s CROSS JOIN entry AS e ON e.scope = s.id
 WHERE ?6 AND (e.content IS NOT NULL OR e.type = 'inode/directory')
   AND (rtrim(lower(substr(e.path, 1, instr(e.path || '/', '/') - 1)), ' .') = ?7
        OR e.path GLOB '*[^ -~]*');

-- Paths, deleted ones included, that changed after a revision. Parameter: pairs of scope and
-- revision.
-- name: changed_paths
SELECT DISTINCT e.path FROM json_each(?) AS w
 CROSS JOIN entry AS e ON e.scope = w.value ->> 0 AND e.revision > w.value ->> 1;

-- name: heads
SELECT w.key, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed
  FROM json_each(?) AS w
  CROSS JOIN entry AS e ON e.scope = w.value ->> 0 AND e.path = w.value ->> 1
  LEFT JOIN content AS b ON b.id = e.base;

-- name: head_with_body
SELECT s.revision, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed, iif(e.size > 262144, NULL, c.body)
  FROM scope AS s
  LEFT JOIN entry AS e ON e.scope = s.id AND e.path = ?
  LEFT JOIN content AS c ON c.id = e.content
  LEFT JOIN content AS b ON b.id = e.base
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?;

-- name: head_without_body
SELECT s.revision, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed
  FROM scope AS s
  LEFT JOIN entry AS e ON e.scope = s.id AND e.path = ?
  LEFT JOIN content AS b ON b.id = e.base
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?;

-- name: heads_by_path
SELECT e.scope, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed
  FROM json_each(?) AS w CROSS JOIN json_each(?) AS p
  JOIN entry AS e ON e.scope = w.value AND e.path = p.value
  LEFT JOIN content AS b ON b.id = e.base;

-- name: heads_by_prefix
SELECT e.scope, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed
  FROM json_each(?) AS w
  CROSS JOIN scope AS s ON s.id = w.value
  CROSS JOIN entry AS e ON e.scope = s.id AND e.path >= ? AND e.path < ?
  LEFT JOIN content AS b ON b.id = e.base
 WHERE e.content IS NOT NULL OR e.type = 'inode/directory' OR s.kind IN ('agent', 'template', 'defaults');

-- name: heads_by_path_at_revision
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed
  FROM json_each(?3) AS p
  CROSS JOIN version AS v ON v.scope = ?1 AND v.path = p.value AND v.version =
       (SELECT n.version FROM version AS n
         WHERE n.scope = ?1 AND n.path = p.value AND n.revision <= ?2
         ORDER BY n.version DESC LIMIT 1)
  LEFT JOIN content AS b ON b.id = v.base;

-- name: heads_by_prefix_at_revision
SELECT e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, e.version_offset, e.mode, e.mtime_ns, e.file_id, e.reviewed
  FROM entry AS e LEFT JOIN content AS b ON b.id = e.base
 WHERE e.scope = ?1 AND e.revision <= ?2 AND e.path >= ?3 AND e.path < ?4
UNION ALL
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed
  FROM entry AS e
  JOIN version AS v ON v.scope = e.scope AND v.path = e.path AND v.version =
       (SELECT n.version FROM version AS n
         WHERE n.scope = e.scope AND n.path = e.path AND n.revision <= ?2
         ORDER BY n.version DESC LIMIT 1)
  LEFT JOIN content AS b ON b.id = v.base
 WHERE e.scope = ?1 AND e.revision > ?2 AND e.path >= ?3 AND e.path < ?4;

-- name: versions
SELECT w.key, v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason,
       v.run, v.redacted, v.source
  FROM json_each(?) AS w
  CROSS JOIN scope AS s ON s.tenant = w.value ->> 0 AND s.kind = w.value ->> 1 AND s.name = w.value ->> 2
  JOIN version AS v ON v.scope = s.id AND v.path = w.value ->> 3 AND v.version = w.value ->> 4
  LEFT JOIN content AS b ON b.id = v.base;

-- name: history
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason,
       v.run, v.redacted, v.source
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id AND v.path = ? AND v.version < ?
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?
 ORDER BY v.version DESC LIMIT ?;

-- name: version_log
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason,
       v.run, v.redacted, v.source
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?
   AND (v.revision, v.path, v.version) > (?, ?, ?)
 ORDER BY v.revision, v.path, v.version LIMIT ?;

-- name: latest_versions
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.version_offset, v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason,
       v.run, v.redacted, v.source
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?
   AND (v.revision, v.path, v.version) < (?, ?, ?)
 ORDER BY v.revision DESC, v.path DESC, v.version DESC LIMIT ?;

-- name: complete_since
SELECT coalesce(max(v.revision), 0)
  FROM scope AS s JOIN version AS v ON v.scope = s.id AND v.version > 1
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?
   AND NOT EXISTS (SELECT 1 FROM version AS p
                    WHERE p.scope = v.scope AND p.path = v.path AND p.version = v.version - 1);

-- name: revision_at
SELECT coalesce(max(v.revision), 0) FROM scope AS s JOIN version AS v ON v.scope = s.id
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ? AND v.at <= ?;

-- Paths whose version at a revision was pruned: the one after it lacks the version before it.
-- name: pruned_paths
SELECT n.path
  FROM (SELECT v.scope, v.path, min(v.version) AS version
          FROM scope AS s JOIN version AS v ON v.scope = s.id
         WHERE s.tenant = ? AND s.kind = ? AND s.name = ? AND v.revision > ?
         GROUP BY v.scope, v.path) AS n
 WHERE n.version > 1
   AND NOT EXISTS (SELECT 1 FROM version AS p
                    WHERE p.scope = n.scope AND p.path = n.path AND p.version = n.version - 1);

-- name: add_content
INSERT INTO content (id, digest, size, created_at, body) VALUES (?, ?, ?, ?, ?);

-- name: missing_content
SELECT w.value FROM json_each(?) AS w
 WHERE NOT EXISTS (SELECT 1 FROM content AS c WHERE c.id = w.value) LIMIT 1;

-- name: add_version
INSERT INTO version (scope, path, version, revision, at, content, digest, size, base, type,
                     version_offset, mode, mtime_ns, file_id, reviewed, author, reason, run, source)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: set_entry
INSERT INTO entry (scope, path, version, revision, at, content, digest, size, base, type,
                   version_offset, mode, mtime_ns, file_id, reviewed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET version = excluded.version, revision = excluded.revision,
   at = excluded.at, content = excluded.content, digest = excluded.digest, size = excluded.size,
   base = excluded.base, type = excluded.type, version_offset = excluded.version_offset,
   mode = excluded.mode, mtime_ns = excluded.mtime_ns, file_id = excluded.file_id,
   reviewed = excluded.reviewed;

-- name: blob_bodies
SELECT id, body FROM content WHERE id IN (SELECT value FROM json_each(?));

-- name: is_external
SELECT body IS NULL FROM content WHERE id = ?;

-- name: blob_body
SELECT id, body FROM content WHERE id = ?;

-- name: add_event
INSERT INTO event (id, tenant, scope, run, sequence, type, payload, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- Events with ids in a row that differ in their payloads only. Parameters: first id, tenant, scope,
-- run, sequence, type, time, payloads.
-- name: add_events
INSERT INTO event (id, tenant, scope, run, sequence, type, payload, at)
SELECT ?1 + p.key, ?2, ?3, ?4, ?5, ?6, p.value, ?7 FROM json_each(?8) AS p;

-- name: events_after
SELECT e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload, e.at
  FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
 WHERE e.id > ? ORDER BY e.id LIMIT ?;

-- name: tenant_events_after
SELECT e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload, e.at
  FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
 WHERE e.tenant = ?1 AND e.id > ?2
   AND (?4 IS NULL OR e.type IN (SELECT value FROM json_each(?4)))
   AND (?5 IS NULL OR e.scope IN (
        SELECT s.id FROM json_each(?5) AS w JOIN scope AS s ON s.tenant = w.value ->> 0
           AND s.kind = w.value ->> 1 AND s.name = w.value ->> 2))
 ORDER BY e.id LIMIT ?3;

-- name: run_events_after
SELECT e.id, e.tenant, s.kind, s.name, e.run, e.sequence, e.type, e.payload, e.at
  FROM event AS e LEFT JOIN scope AS s ON s.id = e.scope
 WHERE e.run = ?6 AND e.tenant = ?1 AND e.id > ?2
   AND (?4 IS NULL OR e.type IN (SELECT value FROM json_each(?4)))
   AND (?5 IS NULL OR e.scope IN (
        SELECT s.id FROM json_each(?5) AS w JOIN scope AS s ON s.tenant = w.value ->> 0
           AND s.kind = w.value ->> 1 AND s.name = w.value ->> 2))
 ORDER BY e.id LIMIT ?3;

-- name: latest_tenant_event
SELECT coalesce((SELECT id FROM event WHERE tenant = ? ORDER BY id DESC LIMIT 1), 0);

-- name: latest_event
SELECT max(coalesce((SELECT max(id) FROM event), 0),
           coalesce((SELECT value FROM counter WHERE name = 'event'), 0));

-- name: record
SELECT tenant, type, id, revision, body, created_at, updated_at FROM record
 WHERE tenant = ? AND type = ? AND id = ?;

-- name: records
SELECT w.key, r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM json_each(?) AS w CROSS JOIN record AS r ON r.tenant = ? AND r.type = ? AND r.id = w.value;

-- name: record_by_unique_key
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM unique_key AS k JOIN record AS r ON r.tenant = k.tenant AND r.type = k.type AND r.id = k.id
 WHERE k.name = ?;

-- name: records_by_unique_key
SELECT w.key, r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM json_each(?) AS w
  CROSS JOIN unique_key AS k ON k.name = w.value
  JOIN record AS r ON r.tenant = k.tenant AND r.type = k.type AND r.id = k.id;

-- name: list_records
SELECT tenant, type, id, revision, body, created_at, updated_at FROM record
 WHERE tenant = ? AND type = ? AND id > ? ORDER BY id LIMIT ?;

-- name: list_records_of_all_tenants
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM collection_revision AS c CROSS JOIN record AS r ON r.tenant = c.tenant AND r.type = c.type
 WHERE c.type = ? AND r.id > ? ORDER BY r.id, r.tenant LIMIT ?;

-- name: count_records
SELECT w.key, count(*) FROM json_each(?) AS w
 CROSS JOIN index_key AS i ON i.tenant = ? AND i.type = ? AND i.name = w.value GROUP BY w.key;

-- name: list_records_by_index_key
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM index_key AS i JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
 WHERE i.tenant = ? AND i.type = ? AND i.name = ? AND i.id > ? ORDER BY i.id LIMIT ?;

-- name: list_records_by_keys
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM index_key AS i CROSS JOIN record AS r
    ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
 WHERE i.tenant = ?1 AND i.type = ?2 AND i.name = ?3 AND ?4 > ?3 AND i.id > ?5
   AND NOT EXISTS (SELECT 1 FROM json_each(?6) AS c
        WHERE NOT EXISTS (SELECT 1 FROM index_key AS o INDEXED BY index_key_by_record
              WHERE o.tenant = ?1 AND o.type = ?2 AND o.id = i.id
                AND o.name >= c.value ->> 0 AND o.name < c.value ->> 1))
 ORDER BY i.id LIMIT ?7;

-- name: list_records_by_key_ranges
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM record AS r
 WHERE r.tenant = ?1 AND r.type = ?2 AND r.id IN (
       SELECT DISTINCT i.id FROM index_key AS i
        WHERE i.tenant = ?1 AND i.type = ?2 AND i.name >= ?3 AND i.name < ?4 AND i.id > ?5
          AND NOT EXISTS (SELECT 1 FROM json_each(?6) AS c
               WHERE NOT EXISTS (SELECT 1 FROM index_key AS o INDEXED BY index_key_by_record
                     WHERE o.tenant = ?1 AND o.type = ?2 AND o.id = i.id
                       AND o.name >= c.value ->> 0 AND o.name < c.value ->> 1))
        ORDER BY i.id LIMIT ?7)
 ORDER BY r.id;

-- name: count_records_by_keys
SELECT count(DISTINCT i.id) FROM index_key AS i
 WHERE i.tenant = ?1 AND i.type = ?2 AND i.name >= ?3 AND i.name < ?4
   AND NOT EXISTS (SELECT 1 FROM json_each(?5) AS c
        WHERE NOT EXISTS (SELECT 1 FROM index_key AS o INDEXED BY index_key_by_record
              WHERE o.tenant = ?1 AND o.type = ?2 AND o.id = i.id
                AND o.name >= c.value ->> 0 AND o.name < c.value ->> 1));

-- name: count_all_records
SELECT count(*) FROM record INDEXED BY record_by_type WHERE tenant = ? AND type = ?;

-- name: count_index_keys
SELECT i.name, count(*) FROM index_key AS i
 WHERE i.tenant = ?1 AND i.type = ?2 AND i.name >= ?3 AND i.name < ?4
 GROUP BY i.name ORDER BY i.name;

-- name: set_record
INSERT INTO record (tenant, type, id, revision, body, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET revision = excluded.revision, body = excluded.body,
   updated_at = excluded.updated_at;

-- name: delete_record
DELETE FROM record WHERE tenant = ? AND type = ? AND id = ?;

-- name: unique_key_owner
SELECT tenant, type, id FROM unique_key WHERE name = ?;

-- name: delete_unique_keys
DELETE FROM unique_key WHERE tenant = ? AND type = ? AND id = ?;

-- name: delete_unique_key
DELETE FROM unique_key WHERE name = ?;

-- name: add_unique_key
INSERT INTO unique_key (name, tenant, type, id) VALUES (?, ?, ?, ?);

-- name: delete_index_keys
DELETE FROM index_key WHERE tenant = ? AND type = ? AND id = ?;

-- name: add_index_key
INSERT INTO index_key (tenant, type, name, id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: collection_revision
SELECT revision FROM collection_revision WHERE tenant = ? AND type = ?;

-- name: collection_revisions
SELECT w.key, c.revision FROM json_each(?) AS w
  CROSS JOIN collection_revision AS c ON c.tenant = w.value ->> 0 AND c.type = w.value ->> 1;

-- name: bump_collection_revision
INSERT INTO collection_revision (tenant, type, revision) VALUES (?, ?, 1)
ON CONFLICT DO UPDATE SET revision = revision + 1;

-- name: add_audit_entry
INSERT INTO audit (id, tenant, at, author, reason, subjects, key_id, key_name, action)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: last_audit_id
SELECT max(id) FROM audit;

-- name: add_audit_key
INSERT OR IGNORE INTO audit_key (tenant, name, at, audit) VALUES (?, ?, ?, ?);

-- name: audit_entries
SELECT id, tenant, at, author, reason, subjects, key_id, key_name, action FROM audit
 WHERE tenant = ?1 AND at >= ?2
   AND (at, id) < (coalesce((SELECT b.at FROM audit AS b WHERE b.id = ?4), ?3), ?4)
 ORDER BY at DESC, id DESC LIMIT ?5;

-- name: audit_entries_by_keys
SELECT a.id, a.tenant, a.at, a.author, a.reason, a.subjects, a.key_id, a.key_name, a.action
  FROM audit_key AS k CROSS JOIN audit AS a ON a.id = k.audit
 WHERE k.tenant = ?1 AND k.name = ?5 AND k.at >= ?2
   AND (k.at, k.audit) < (coalesce((SELECT b.at FROM audit AS b WHERE b.id = ?4), ?3), ?4)
   AND NOT EXISTS (SELECT 1 FROM json_each(?6) AS c
        WHERE NOT EXISTS (SELECT 1 FROM audit_key AS o
              WHERE o.tenant = ?1 AND o.name = c.value AND o.at = k.at AND o.audit = k.audit))
 ORDER BY k.at DESC, k.audit DESC LIMIT ?7;

-- name: count_audit_entries
SELECT count(*) FROM audit WHERE tenant = ? AND at >= ? AND at < ?;

-- name: count_audit_entries_by_keys
SELECT count(*) FROM audit_key AS k
 WHERE k.tenant = ?1 AND k.name = ?4 AND k.at >= ?2 AND k.at < ?3
   AND NOT EXISTS (SELECT 1 FROM json_each(?5) AS c
        WHERE NOT EXISTS (SELECT 1 FROM audit_key AS o
              WHERE o.tenant = ?1 AND o.name = c.value AND o.at = k.at AND o.audit = k.audit));

-- name: audit_entries_of_commits
SELECT w.key, a.id, a.tenant, a.at, a.author, a.reason, a.subjects, a.key_id, a.key_name,
       a.action
  FROM json_each(?1) AS w
 CROSS JOIN audit AS a ON a.id = (
       SELECT min(b.id) FROM audit AS b
        WHERE b.tenant = ?2 AND b.at = w.value ->> 0 AND b.author = w.value ->> 1
          AND b.reason = w.value ->> 2);

-- name: mark_used
INSERT INTO key_usage (id, last_used_at) VALUES (?, ?)
ON CONFLICT DO UPDATE SET last_used_at = max(last_used_at, excluded.last_used_at);

-- name: last_used
SELECT w.key, u.last_used_at FROM json_each(?) AS w CROSS JOIN key_usage AS u ON u.id = w.value;

-- name: add_run
INSERT INTO run (id, tenant, scope, workflow, mode, status, author, started_at, ended_at, parent,
                 replay_of, snapshot_kept, variables, event_count, session, reported_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, 1, ?, ?);

-- name: record_prompt
UPDATE run SET prompt = ? WHERE tenant = ? AND id = ? AND prompt IS NULL AND snapshot_kept = 1;

-- name: add_run_layer
INSERT INTO run_layer (run, position, scope, revision) VALUES (?, ?, ?, ?);

-- name: runs
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author, r.started_at,
       r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason
  FROM json_each(?) AS w
  CROSS JOIN run AS r ON r.tenant = ? AND r.id = w.value JOIN scope AS s ON s.id = r.scope;

-- name: list_runs
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author, r.started_at,
       r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason
  FROM run AS r JOIN scope AS s ON s.id = r.scope
 WHERE r.tenant = ?1 AND r.id >= ?2 AND r.id < ?3
 ORDER BY r.id DESC LIMIT ?4;

-- name: list_runs_by_status
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author, r.started_at,
       r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason
  FROM run AS r JOIN scope AS s ON s.id = r.scope
 WHERE r.tenant = ?1 AND r.id >= ?2 AND r.id < ?3 AND r.status = ?4
 ORDER BY r.id DESC LIMIT ?5;

-- name: list_runs_of_scope
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author, r.started_at,
       r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason
  FROM scope AS s CROSS JOIN run AS r ON r.scope = s.id
 WHERE s.tenant = ?4 AND s.kind = ?5 AND s.name = ?6
   AND r.tenant = ?1 AND r.id >= ?2 AND r.id < ?3
   AND (?7 IS NULL OR r.session = ?7) AND (?8 IS NULL OR r.status = ?8)
 ORDER BY r.id DESC LIMIT ?9;

-- name: count_runs
SELECT count(*) FROM run AS r
 WHERE r.tenant = ?1 AND r.id >= ?2 AND r.id < ?3;

-- name: count_runs_by_status
SELECT count(*) FROM run AS r
 WHERE r.tenant = ?1 AND r.id >= ?2 AND r.id < ?3 AND r.status = ?4;

-- name: count_runs_of_scope
SELECT count(*) FROM scope AS s CROSS JOIN run AS r ON r.scope = s.id
 WHERE s.tenant = ?4 AND s.kind = ?5 AND s.name = ?6
   AND r.tenant = ?1 AND r.id >= ?2 AND r.id < ?3
   AND (?7 IS NULL OR r.session = ?7) AND (?8 IS NULL OR r.status = ?8);

-- name: runs_with_layer
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author, r.started_at,
       r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason
  FROM scope AS f
  CROSS JOIN run_layer AS l ON l.scope = f.id AND l.revision >= ?4 AND l.revision < ?5
  CROSS JOIN run AS r ON r.tenant = ?1 AND r.id = l.run JOIN scope AS s ON s.id = r.scope
 WHERE f.tenant = ?1 AND f.kind = ?2 AND f.name = ?3 AND r.id < ?6
   AND (?8 IS NULL OR (s.kind = ?8 AND s.name = ?9))
 ORDER BY r.id DESC LIMIT ?7;

-- name: newest_runs
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author, r.started_at,
       r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason
  FROM json_each(?1) AS w
  CROSS JOIN scope AS s ON s.tenant = w.value ->> 0 AND s.kind = w.value ->> 1 AND s.name = w.value ->> 2
  CROSS JOIN run AS r ON r.tenant = ?2 AND r.id =
       (SELECT max(l.id) FROM run AS l WHERE l.scope = s.id AND l.tenant = ?2);

-- name: run_layers
SELECT l.run, s.tenant, s.kind, s.name, l.revision
  FROM json_each(?) AS w
  CROSS JOIN run_layer AS l ON l.run = w.value JOIN scope AS s ON s.id = l.scope
 ORDER BY l.run, l.position;

-- name: update_run
UPDATE run SET status = ?, ended_at = ?, snapshot_kept = ?, abandoned_at = ?, reason = ?
 WHERE id = ? AND tenant = ? AND status = ? AND snapshot_kept = ?
   AND coalesce(?, reported_at) = reported_at;

-- name: report_run
UPDATE run SET reported_at = ?3 WHERE tenant = ?1 AND id = ?2 AND reported_at < ?3;

-- name: unreported_runs
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.author, r.started_at,
       r.ended_at, r.parent, r.replay_of, r.snapshot_kept, r.variables, r.session,
       r.reported_at, r.abandoned_at, r.reason
  FROM run AS r JOIN scope AS s ON s.id = r.scope
 WHERE r.status = 'running' AND r.reported_at < ?
 ORDER BY r.reported_at LIMIT ?;

-- name: delete_run_layers
DELETE FROM run_layer WHERE run = ?;

-- name: next_run_sequence
UPDATE run SET event_count = event_count + 1, reported_at = max(reported_at, ?)
 WHERE id = ? AND tenant = ? RETURNING event_count;

-- name: idempotency_key
SELECT fingerprint, claimed_at, versions, revision, status, sealed FROM idempotency_key
 WHERE tenant = ? AND endpoint = ? AND key = ?;

-- name: claim_idempotency_key
INSERT INTO idempotency_key (tenant, endpoint, key, fingerprint, claimed_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, claimed_at = excluded.claimed_at,
   versions = NULL, revision = NULL, status = NULL, sealed = NULL;

-- name: commit_idempotency_key
UPDATE idempotency_key SET versions = ?, revision = ?
 WHERE tenant = ? AND endpoint = ? AND key = ?;

-- name: complete_idempotency_key
UPDATE idempotency_key SET status = ?, sealed = ?
 WHERE tenant = ? AND endpoint = ? AND key = ? AND status IS NULL;

-- name: unmark_idempotency_key
UPDATE idempotency_key SET versions = NULL
 WHERE tenant = ? AND endpoint = ? AND key = ? AND status IS NULL;

-- name: release_idempotency_key
DELETE FROM idempotency_key
 WHERE tenant = ? AND endpoint = ? AND key = ? AND versions IS NULL AND status IS NULL;

-- name: delivery_cursor
SELECT cursor FROM delivery_cursor WHERE name = 'deliveries';

-- name: set_delivery_cursor
INSERT INTO delivery_cursor (name, cursor) VALUES ('deliveries', ?)
ON CONFLICT DO UPDATE SET cursor = excluded.cursor;

-- name: add_delivery
INSERT INTO delivery (id, tenant, webhook, type, body, state, created_at, due_at, attempts)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: lease_deliveries
UPDATE delivery SET due_at = ?2
 WHERE id IN (SELECT id FROM delivery WHERE state = 'pending' AND due_at <= ?1
               ORDER BY due_at LIMIT ?3)
RETURNING id, tenant, webhook, type, body, state, created_at, due_at, attempts;

-- name: update_delivery
UPDATE delivery SET state = ?, due_at = ?, attempts = ? WHERE id = ?;

-- name: add_attempt
INSERT INTO attempt (delivery, position, at, status, problem, elapsed_ms)
VALUES (?1, (SELECT coalesce(max(position), 0) + 1 FROM attempt WHERE delivery = ?1),
        ?2, ?3, ?4, ?5);

-- name: deliveries
SELECT d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created_at, d.due_at, d.attempts
  FROM json_each(?) AS w CROSS JOIN delivery AS d ON d.id = w.value WHERE d.tenant = ?;

-- name: list_deliveries
SELECT id, tenant, webhook, type, body, state, created_at, due_at, attempts FROM delivery
 WHERE tenant = ? AND webhook = ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: count_deliveries
SELECT count(*) FROM delivery WHERE tenant = ? AND webhook = ?;

-- name: attempts
SELECT a.delivery, a.at, a.status, a.problem, a.elapsed_ms
  FROM json_each(?) AS w CROSS JOIN attempt AS a ON a.delivery = w.value
 ORDER BY a.delivery, a.position;

-- name: replay_delivery
UPDATE delivery SET state = 'pending', due_at = ?, attempts = 0 WHERE id = ? AND tenant = ?;

-- name: delete_search_terms
DELETE FROM search_term WHERE tenant = ? AND type = ? AND id = ?;

-- name: add_search_term
INSERT OR IGNORE INTO search_term (tenant, type, index_key, term, id) VALUES (?, ?, ?, ?, ?);

-- name: count_record_terms
SELECT q.value,
       (SELECT count(*) FROM (SELECT 1 FROM search_term AS t
         WHERE t.tenant = ?2 AND t.type = ?3 AND t.index_key = ?4 AND t.term = q.value LIMIT ?5)),
       (SELECT count(*) FROM (SELECT 1 FROM search_term AS t
         WHERE t.tenant = ?2 AND t.type = ?3 AND t.index_key = ?4
           AND t.term >= q.value AND t.term < q.value || char(1114111) LIMIT ?5))
  FROM json_each(?1) AS q;

-- name: record_ids_by_terms
SELECT id FROM (
    SELECT t.id, max(CASE WHEN t.term = q.value ->> 0 THEN q.value ->> 1 ELSE q.value ->> 2 END)
                 AS weight
      FROM json_each(?1) AS q
     CROSS JOIN search_term AS t ON t.tenant = ?2 AND t.type = ?3 AND t.index_key = ?4
            AND t.term >= q.value ->> 0
            AND t.term < (q.value ->> 0) || iif(q.value ->> 2, char(1114111), char(1))
     GROUP BY t.id, q.key)
 GROUP BY id ORDER BY sum(weight) DESC, id DESC LIMIT ?5;

-- name: add_recall
INSERT OR IGNORE INTO recall (tenant, agent, memory, id, query, score, at)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: recall_stats
SELECT memory, count(*) AS hits, avg(score), count(DISTINCT query),
       count(DISTINCT at / 86400000), max(at)
  FROM recall WHERE tenant = ? AND agent = ? AND score >= ?
 GROUP BY memory ORDER BY hits DESC, memory LIMIT ?;

-- name: recall_counts_since
SELECT memory, count(*) FROM recall WHERE tenant = ? AND agent = ? AND at >= ? GROUP BY memory;

-- name: delete_recalls
DELETE FROM recall WHERE tenant = ? AND agent = ? AND memory = ? AND at < ?;

-- name: prune_recalls
DELETE FROM recall WHERE tenant = ? AND agent = ? AND at < ?;

-- name: list_records_of_all_tenants_by_index_key
SELECT r.tenant, r.type, r.id, r.revision, r.body, r.created_at, r.updated_at
  FROM collection_revision AS c
 CROSS JOIN index_key AS i ON i.tenant = c.tenant AND i.type = c.type AND i.name = ?2 AND i.id > ?3
 CROSS JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
 WHERE c.type = ?1 ORDER BY i.id, i.tenant LIMIT ?4;

-- name: record_revisions
SELECT w.key, r.revision
  FROM json_each(?) AS w
 CROSS JOIN record AS r ON r.tenant = w.value ->> 0 AND r.type = w.value ->> 1
                       AND r.id = w.value ->> 2;

-- name: index_keys_with_bodies
SELECT i.tenant, i.type, i.name, i.id, r.body
  FROM index_key AS i JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
 WHERE i.type = ?;

-- name: delete_all_search_terms
DELETE FROM search_term;

-- name: unreferenced_contents
SELECT id FROM content
 WHERE created_at < ?
   AND id NOT IN (SELECT content FROM version WHERE content IS NOT NULL
                  UNION ALL SELECT base FROM version WHERE base IS NOT NULL);

-- name: delete_content
DELETE FROM content WHERE id = ?;

-- name: external_digests
SELECT DISTINCT digest FROM content WHERE body IS NULL;

-- name: delete_expired_idempotency_keys
DELETE FROM idempotency_key WHERE claimed_at < ?;

-- name: delete_old_attempts
DELETE FROM attempt WHERE delivery IN
       (SELECT id FROM delivery WHERE state <> 'pending' AND created_at < ?);

-- name: delete_old_deliveries
DELETE FROM delivery WHERE state <> 'pending' AND created_at < ?;

-- name: expired_events
SELECT id FROM event WHERE at < ?
   AND id <= coalesce((SELECT CAST(cursor AS INTEGER) FROM delivery_cursor
                        WHERE name = 'deliveries'), 0)
   AND (run IS NULL OR NOT EXISTS (
        SELECT 1 FROM run AS r
         WHERE r.tenant = event.tenant AND r.id = event.run AND r.snapshot_kept = 1));

-- name: delete_event
DELETE FROM event WHERE id = ?;

-- name: save_content_counter
INSERT INTO counter (name, value) SELECT 'content', max(id) FROM content HAVING max(id) IS NOT NULL
ON CONFLICT DO UPDATE SET value = max(value, excluded.value);

-- name: save_event_counter
INSERT INTO counter (name, value) SELECT 'event', max(id) FROM event HAVING max(id) IS NOT NULL
ON CONFLICT DO UPDATE SET value = max(value, excluded.value);

-- name: migrations
SELECT name FROM migration ORDER BY name;

-- name: start_session
INSERT INTO session (tenant, id, agent, mode, plugin, started_at, ended_at, run, entry_count,
                     last_sequence, last_entry_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?) ON CONFLICT DO NOTHING;

-- name: sessions
SELECT s.tenant, s.id, s.agent, s.mode, s.plugin, s.started_at, s.ended_at, s.entry_count,
       s.last_sequence, s.last_entry_at, s.run
  FROM json_each(?) AS w
 CROSS JOIN session AS s ON s.tenant = w.value ->> 0 AND s.agent = w.value ->> 1
                        AND s.id = w.value ->> 2;

-- name: extend_session
UPDATE session SET entry_count = entry_count + ?1, last_sequence = last_sequence + ?1,
       last_entry_at = max(last_entry_at, ?2)
 WHERE tenant = ?3 AND id = ?4 AND agent = ?5 AND ended_at IS NULL
RETURNING tenant, id, agent, mode, plugin, started_at, ended_at, entry_count, last_sequence,
       last_entry_at, run;

-- name: shrink_session
UPDATE session SET entry_count = entry_count - ?1, last_entry_at = max(last_entry_at, ?2)
 WHERE tenant = ?3 AND id = ?4 AND agent = ?5
RETURNING tenant, id, agent, mode, plugin, started_at, ended_at, entry_count, last_sequence,
       last_entry_at, run;

-- name: open_session_entry_count
SELECT entry_count FROM session
 WHERE tenant = ? AND id = ? AND agent = ? AND ended_at IS NULL;

-- name: open_session_last_entry
SELECT coalesce((SELECT max(e.sequence) FROM session_entry AS e
                  WHERE e.tenant = s.tenant AND e.agent = s.agent AND e.session = s.id), 0)
  FROM session AS s WHERE s.tenant = ? AND s.id = ? AND s.agent = ? AND s.ended_at IS NULL;

-- name: set_session_run
UPDATE session SET run = ? WHERE tenant = ? AND id = ? AND agent = ?;

-- name: last_session_entry_id
SELECT coalesce(max(id), 0) FROM session_entry;

-- name: add_session_entry
INSERT INTO session_entry (id, tenant, agent, session, sequence, at, role, content, message, plugin,
                           sender, item, run)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_session_entry_terms
INSERT INTO session_entry_text (rowid, owner, terms) VALUES (?, ?, ?);

-- name: close_session
UPDATE session SET ended_at = ? WHERE tenant = ? AND id = ? AND agent = ? AND ended_at IS NULL;

-- name: count_sessions
SELECT w.key, (SELECT count(*) FROM session AS s WHERE s.tenant = ?2 AND s.agent = w.value
                  AND (?3 IS NULL OR s.mode = ?3))
  FROM json_each(?1) AS w ORDER BY w.key;

-- name: list_sessions
SELECT tenant, id, agent, mode, plugin, started_at, ended_at, entry_count, last_sequence,
       last_entry_at, run
  FROM session
 WHERE tenant = ?1 AND agent = ?2 AND (last_entry_at, id) < (?3, ?4) AND (?5 IS NULL OR mode = ?5)
 ORDER BY last_entry_at DESC, id DESC LIMIT ?6;

-- name: session_entries
SELECT sequence, at, role, content, message, plugin, sender, item, run FROM session_entry
 WHERE tenant = ? AND agent = ? AND session = ? AND sequence > ? ORDER BY sequence LIMIT ?;

-- name: latest_session_entries
SELECT sequence, at, role, content, message, plugin, sender, item, run FROM session_entry
 WHERE tenant = ? AND agent = ? AND session = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?;

-- name: session_entries_of_run
SELECT session, sequence, at, role, content, message, plugin, sender, item, run FROM session_entry
 WHERE tenant = ? AND agent = ? AND run = ? AND (at, session, sequence) > (?, ?, ?)
 ORDER BY at, session, sequence LIMIT ?;

-- name: count_session_entries_by_agent
SELECT coalesce(sum(entry_count), 0) FROM session WHERE tenant = ? AND agent = ?;

-- name: count_session_entry_terms
SELECT count(*) FROM (SELECT 1 FROM session_entry_text WHERE session_entry_text MATCH ? LIMIT ?);

-- name: search_session_entries
SELECT e.id
  FROM json_each(?1) AS q
 CROSS JOIN session_entry_text AS t ON t.session_entry_text MATCH (q.value ->> 0)
 CROSS JOIN session_entry AS e ON e.id = t.rowid
 CROSS JOIN session AS s ON s.tenant = e.tenant AND s.agent = e.agent AND s.id = e.session
 WHERE s.tenant = ?2 AND s.agent = ?3 AND (?4 IS NULL OR s.mode = ?4)
 GROUP BY e.id
 ORDER BY sum(q.value ->> 1) DESC, e.at DESC, e.session DESC, e.sequence DESC LIMIT ?5;

-- name: session_entries_by_id
SELECT e.session, e.sequence, e.at, e.role, e.content, e.message, e.plugin, e.sender, e.item, e.run
  FROM json_each(?) AS w CROSS JOIN session_entry AS e ON e.id = w.value ORDER BY w.key;

-- name: list_updated_sessions
SELECT tenant, id, agent, mode, plugin, started_at, ended_at, entry_count, last_sequence,
       last_entry_at, run
  FROM session WHERE last_entry_at >= ? AND (last_entry_at, tenant, agent, id) > (?, ?, ?, ?)
 ORDER BY last_entry_at, tenant, agent, id LIMIT ?;

-- name: delete_session
DELETE FROM session WHERE tenant = ? AND agent = ? AND id = ? AND last_sequence = ?
                      AND entry_count = ?;

-- name: unlink_runs_of_session
UPDATE run SET session = NULL
 WHERE scope = (SELECT id FROM scope WHERE tenant = ?1 AND kind = 'agent' AND name = ?2)
   AND session = ?3;

-- name: rename_session_in_entries
UPDATE session_entry SET session = ?4 WHERE tenant = ?1 AND agent = ?2 AND session = ?3;

-- name: rename_session_in_runs
UPDATE run SET session = ?4
 WHERE scope = (SELECT id FROM scope WHERE tenant = ?1 AND kind = 'agent' AND name = ?2)
   AND session = ?3;

-- name: indexed_entries_of_session
SELECT e.id, e.content FROM session_entry AS e JOIN session_entry_text_docsize AS d ON d.id = e.id
 WHERE e.tenant = ? AND e.agent = ? AND e.session = ? AND e.sequence >= ?;

-- name: delete_session_entry_terms
INSERT INTO session_entry_text (session_entry_text, rowid, owner, terms) VALUES ('delete', ?, ?, ?);

-- name: delete_session_entries
DELETE FROM session_entry WHERE tenant = ? AND agent = ? AND session = ? AND sequence >= ?;

-- name: delete_all_session_entry_terms
INSERT INTO session_entry_text (session_entry_text) VALUES ('delete-all');

-- name: count_session_entries
SELECT count(*) FROM session_entry;

-- name: session_entries_to_index
SELECT e.tenant, e.agent, e.session, e.sequence, e.id, e.content, d.id IS NOT NULL
  FROM session_entry AS e LEFT JOIN session_entry_text_docsize AS d ON d.id = e.id
 WHERE (e.tenant, e.agent, e.session, e.sequence) > (?, ?, ?, ?)
 ORDER BY e.tenant, e.agent, e.session, e.sequence LIMIT ?;

-- name: contents_of_scope
SELECT content FROM version WHERE scope = ?1 AND content IS NOT NULL
UNION SELECT base FROM version WHERE scope = ?1 AND base IS NOT NULL;

-- name: erase_run_events
DELETE FROM event WHERE run IN (SELECT id FROM run WHERE scope = ?);

-- name: erase_run_layers
DELETE FROM run_layer WHERE run IN (SELECT id FROM run WHERE scope = ?);

-- name: release_runs
UPDATE run SET status = CASE status WHEN 'running' THEN 'cancelled' ELSE status END,
       ended_at = coalesce(ended_at, ?2), snapshot_kept = 0, variables = '{}',
       workflow = '', session = NULL, reason = NULL, prompt = NULL
 WHERE scope = ?1;

-- name: erase_entries
DELETE FROM entry WHERE scope = ?;

-- name: erase_versions
DELETE FROM version WHERE scope = ?;

-- name: empty_scope
UPDATE scope SET revision = revision + 1, files = 0, size = 0 WHERE id = ?;

-- name: unreferenced_among
SELECT w.value FROM json_each(?) AS w
 WHERE w.value NOT IN (SELECT content FROM version WHERE content IS NOT NULL
                       UNION ALL SELECT base FROM version WHERE base IS NOT NULL);

-- name: begin_index_merge
INSERT INTO session_entry_text (session_entry_text, rank) VALUES ('merge', -500);

-- name: continue_index_merge
INSERT INTO session_entry_text (session_entry_text, rank) VALUES ('merge', 500);

-- name: orphans
SELECT o.tenant, o.agent
  FROM (SELECT s.tenant, s.name AS agent FROM scope AS s
         WHERE s.kind = 'agent' AND EXISTS (SELECT 1 FROM entry AS e WHERE e.scope = s.id)
        UNION SELECT s.tenant, s.agent FROM session AS s) AS o
 WHERE NOT EXISTS (SELECT 1 FROM record AS r
                    WHERE r.tenant = o.tenant AND r.type = 'agent' AND r.id = o.agent)
   AND EXISTS (SELECT 1 FROM audit AS a
                WHERE a.tenant = o.tenant AND a.reason = 'delete an agent'
                  AND instr(a.subjects, '"agent/' || o.agent || '"') > 0);

-- name: stored_versions
SELECT s.tenant, s.kind, s.name, e.version = v.version, v.scope, v.path, v.version, v.revision,
       v.at, v.content, v.digest, v.size, v.type, v.base, b.digest, b.size, v.version_offset,
       v.mode, v.mtime_ns, v.file_id, v.reviewed, v.author, v.reason, v.run, v.redacted, v.source
  FROM version AS v
 CROSS JOIN scope AS s ON s.id = v.scope
 CROSS JOIN entry AS e ON e.scope = v.scope AND e.path = v.path
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = ?1 AND (v.scope, v.path, v.version) > (?2, ?3, ?4)
 ORDER BY v.scope, v.path, v.version LIMIT ?5;

-- name: stored_records
SELECT tenant, type, id, revision, body, created_at, updated_at,
       (SELECT json_group_array(k.name) FROM unique_key AS k
         WHERE k.tenant = r.tenant AND k.type = r.type AND k.id = r.id),
       (SELECT json_group_array(k.name) FROM index_key AS k
         WHERE k.tenant = r.tenant AND k.type = r.type AND k.id = r.id)
  FROM record AS r WHERE tenant = ?1 AND (type, id) > (?2, ?3) ORDER BY type, id LIMIT ?4;

-- name: version_contents
SELECT content, digest, base FROM version
 WHERE scope = ?1 AND path = ?2 AND version = ?3
   AND version < (SELECT e.version FROM entry AS e WHERE e.scope = ?1 AND e.path = ?2);

-- name: replace_version
UPDATE version SET content = ?4, digest = ?5, size = ?6, base = ?7, type = ?8,
       redacted = max(redacted, ?9)
 WHERE scope = ?1 AND path = ?2 AND version = ?3;

-- name: raise_scope_revision
UPDATE scope SET revision = revision + 1 WHERE id = ?;

-- name: contents_of_deleted_path
SELECT v.content, v.base FROM entry AS e JOIN version AS v ON v.scope = e.scope AND v.path = e.path
 WHERE e.scope = ? AND e.path = ? AND e.content IS NULL;

-- name: erase_path_versions
DELETE FROM version WHERE scope = ? AND path = ?;

-- name: erase_source_path
UPDATE version SET source = NULL WHERE scope = ? AND source ->> 2 = ?;

-- name: erase_path_entry
DELETE FROM entry WHERE scope = ? AND path = ?;

-- name: content_digests
SELECT id, digest, body IS NULL FROM content WHERE id IN (SELECT value FROM json_each(?));

-- name: external_among
SELECT DISTINCT hex(digest) FROM content
 WHERE body IS NULL AND hex(digest) IN (SELECT value FROM json_each(?));

-- name: unreferenced_bodies
SELECT id, body FROM content
 WHERE id > ?1 AND body IS NOT NULL
   AND id NOT IN (SELECT content FROM version WHERE content IS NOT NULL
                  UNION ALL SELECT base FROM version WHERE base IS NOT NULL)
 ORDER BY id LIMIT ?2;

-- name: indexed_entry
SELECT e.id, e.content, d.id IS NOT NULL
  FROM session_entry AS e LEFT JOIN session_entry_text_docsize AS d ON d.id = e.id
 WHERE e.tenant = ? AND e.agent = ? AND e.session = ? AND e.sequence = ?;

-- name: tallies_of_names
SELECT t.name, t.key, t.value
  FROM json_each(?3) AS w CROSS JOIN tally AS t
    ON t.tenant = ?1 AND t.kind = ?2 AND t.name = w.value;

-- name: tallies_since
SELECT name, key, value FROM tally WHERE tenant = ? AND kind = ? AND name >= ?;

-- name: tally_total
SELECT coalesce(sum(value), 0) FROM tally WHERE tenant = ? AND kind = ? AND name < ?;

-- name: wrong_tallies
SELECT tenant, kind, name, sum(kept), sum(counted)
  FROM (SELECT tenant, kind, name, key, value AS kept, 0 AS counted FROM tally
         UNION ALL
        SELECT tenant, kind, name, key, 0, value FROM count_everything) AS c
 GROUP BY tenant, kind, name, key HAVING sum(kept) <> sum(counted)
 ORDER BY 1, 2, 3 LIMIT ?;

-- name: delete_tallies
DELETE FROM tally;

-- name: rebuild_tallies
INSERT INTO tally (tenant, kind, name, key, value)
SELECT tenant, kind, name, key, value FROM count_everything WHERE value <> 0;

-- name: tallies_of_agents
SELECT n.name, n.key, sum(n.value) FROM (
    SELECT printf('%08d', r.started_at / 3600000) AS name, r.status AS key, 1 AS value
      FROM json_each(?3) AS w CROSS JOIN scope AS s
        ON s.tenant = ?1 AND s.kind = 'agent' AND s.name = w.value
     CROSS JOIN run AS r ON r.scope = s.id AND r.tenant = ?1
     WHERE ?2 = 'runs'
     UNION ALL
    SELECT printf('%06d', r.started_at / 86400000), p.key, p.value
      FROM json_each(?3) AS w CROSS JOIN scope AS s
        ON s.tenant = ?1 AND s.kind = 'agent' AND s.name = w.value
     CROSS JOIN run AS r ON r.scope = s.id AND r.tenant = ?1
     CROSS JOIN json_each(coalesce(r.prompt, '{}')) AS p
     WHERE ?2 = 'prompts'
     UNION ALL
    SELECT printf('%06d', r.created_at / 86400000), '', 1
      FROM json_each(?3) AS w CROSS JOIN index_key AS i
        ON i.tenant = ?1 AND i.type = ?2 AND i.name = 'agent:' || w.value
     CROSS JOIN record AS r ON r.tenant = i.tenant AND r.type = i.type AND r.id = i.id
     WHERE ?2 IN ('memory', 'promotion')
) AS n WHERE n.name >= ?4 GROUP BY n.name, n.key;

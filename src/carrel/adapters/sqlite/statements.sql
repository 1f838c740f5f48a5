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

-- name: move_scope
UPDATE scope SET revision = ?, files = ?, size = ? WHERE id = ?;

-- name: scope_names
SELECT id, tenant, kind, name FROM scope WHERE id IN (SELECT value FROM json_each(?));

-- name: head
SELECT e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size
  FROM entry AS e LEFT JOIN content AS b ON b.id = e.base
 WHERE e.scope = ? AND e.path = ?;

-- name: beneath
SELECT path FROM entry WHERE scope = ? AND path > ? AND path < ? AND content IS NOT NULL
 ORDER BY path;

-- name: heads
SELECT w.key, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size
  FROM json_each(?) AS w
  CROSS JOIN entry AS e ON e.scope = w.value ->> 0 AND e.path = w.value ->> 1
  LEFT JOIN content AS b ON b.id = e.base;

-- name: one
SELECT s.revision, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, c.body
  FROM scope AS s
  LEFT JOIN entry AS e ON e.scope = s.id AND e.path = ?
  LEFT JOIN content AS c ON c.id = e.content
  LEFT JOIN content AS b ON b.id = e.base
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?;

-- name: some
SELECT e.scope, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size
  FROM json_each(?) AS w CROSS JOIN json_each(?) AS p
  JOIN entry AS e ON e.scope = w.value AND e.path = p.value
  LEFT JOIN content AS b ON b.id = e.base;

-- name: all
SELECT e.scope, e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size
  FROM json_each(?) AS w
  CROSS JOIN entry AS e ON e.scope = w.value AND e.path >= ? AND e.path < ?
  LEFT JOIN content AS b ON b.id = e.base
 WHERE e.content IS NOT NULL;

-- name: some_at
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size
  FROM json_each(?3) AS p
  CROSS JOIN version AS v ON v.scope = ?1 AND v.path = p.value AND v.version =
       (SELECT n.version FROM version AS n
         WHERE n.scope = ?1 AND n.path = p.value AND n.revision <= ?2
         ORDER BY n.version DESC LIMIT 1)
  LEFT JOIN content AS b ON b.id = v.base;

-- name: all_at
SELECT e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size
  FROM entry AS e LEFT JOIN content AS b ON b.id = e.base
 WHERE e.scope = ?1 AND e.revision <= ?2 AND e.content IS NOT NULL AND e.path >= ?3 AND e.path < ?4
UNION ALL
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size
  FROM entry AS e
  JOIN version AS v ON v.scope = e.scope AND v.path = e.path AND v.version =
       (SELECT n.version FROM version AS n
         WHERE n.scope = e.scope AND n.path = e.path AND n.revision <= ?2
         ORDER BY n.version DESC LIMIT 1)
  LEFT JOIN content AS b ON b.id = v.base
 WHERE e.scope = ?1 AND e.revision > ?2 AND v.content IS NOT NULL AND e.path >= ?3 AND e.path < ?4;

-- name: versions
SELECT w.key, v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.by, v.why, v.run
  FROM json_each(?) AS w
  CROSS JOIN scope AS s ON s.tenant = w.value ->> 0 AND s.kind = w.value ->> 1 AND s.name = w.value ->> 2
  JOIN version AS v ON v.scope = s.id AND v.path = w.value ->> 3 AND v.version = w.value ->> 4
  LEFT JOIN content AS b ON b.id = v.base;

-- name: history
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.by, v.why, v.run
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id AND v.path = ? AND v.version < ?
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?
 ORDER BY v.version DESC LIMIT ?;

-- name: log
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type,
       v.base, b.digest, b.size, v.by, v.why, v.run
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?
   AND (v.revision, v.path, v.version) > (?, ?, ?)
 ORDER BY v.revision, v.path, v.version LIMIT ?;

-- name: unbroken
SELECT coalesce(max(v.revision), 0)
  FROM scope AS s JOIN version AS v ON v.scope = s.id AND v.version > 1
 WHERE s.tenant = ? AND s.kind = ? AND s.name = ?
   AND NOT EXISTS (SELECT 1 FROM version AS p
                    WHERE p.scope = v.scope AND p.path = v.path AND p.version = v.version - 1);

-- name: add_content
INSERT INTO content (id, digest, size, at, body) VALUES (?, ?, ?, ?, ?);

-- name: add_version
INSERT INTO version (scope, path, version, revision, at, content, digest, size, base, type,
                     by, why, run)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: set_entry
INSERT INTO entry (scope, path, version, revision, at, content, digest, size, base, type)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET version = excluded.version, revision = excluded.revision,
   at = excluded.at, content = excluded.content, digest = excluded.digest, size = excluded.size,
   base = excluded.base, type = excluded.type;

-- name: prune_version
DELETE FROM version AS v
 WHERE v.scope = ?1 AND v.path = ?2 AND v.version = ?3
   AND NOT EXISTS (
       SELECT 1 FROM run_layer AS l
        WHERE l.scope = ?1 AND l.revision >= v.revision AND l.revision <
              (SELECT n.revision FROM version AS n
                WHERE n.scope = ?1 AND n.path = ?2 AND n.version > ?3
                ORDER BY n.version LIMIT 1))
   AND NOT EXISTS (
       SELECT 1 FROM scope AS s
         JOIN record AS r ON r.tenant = s.tenant AND r.noun = 'agent' AND r.id = s.name
        WHERE s.id = ?1 AND s.kind = 'agent'
          AND json_type(r.body, '$.config.workspaceGit.enabled') = 'true');

-- name: bodies
SELECT id, body FROM content WHERE id IN (SELECT value FROM json_each(?));

-- name: body
SELECT id, body FROM content WHERE id = ?;

-- name: add_event
INSERT INTO event (id, tenant, scope, run, sequence, type, payload, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

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

-- name: latest_event
SELECT max(coalesce((SELECT max(id) FROM event), 0),
           coalesce((SELECT value FROM counter WHERE name = 'event'), 0));

-- name: record
SELECT tenant, noun, id, revision, body, created, changed FROM record
 WHERE tenant = ? AND noun = ? AND id = ?;

-- name: records
SELECT w.key, r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM json_each(?) AS w CROSS JOIN record AS r ON r.tenant = ? AND r.noun = ? AND r.id = w.value;

-- name: record_named
SELECT r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM handle AS h JOIN record AS r ON r.tenant = h.tenant AND r.noun = h.noun AND r.id = h.id
 WHERE h.name = ?;

-- name: records_named
SELECT w.key, r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM json_each(?) AS w
  CROSS JOIN handle AS h ON h.name = w.value
  JOIN record AS r ON r.tenant = h.tenant AND r.noun = h.noun AND r.id = h.id;

-- name: records_listed
SELECT tenant, noun, id, revision, body, created, changed FROM record
 WHERE tenant = ? AND noun = ? AND id > ? ORDER BY id LIMIT ?;

-- name: records_everywhere
SELECT r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM shelf AS s CROSS JOIN record AS r ON r.tenant = s.tenant AND r.noun = s.noun
 WHERE s.noun = ? AND r.id > ? ORDER BY r.id, r.tenant LIMIT ?;

-- name: records_counted
SELECT w.key, count(*) FROM json_each(?) AS w
 CROSS JOIN link AS l ON l.tenant = ? AND l.noun = ? AND l.name = w.value GROUP BY w.key;

-- name: records_linked
SELECT r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM link AS l JOIN record AS r ON r.tenant = l.tenant AND r.noun = l.noun AND r.id = l.id
 WHERE l.tenant = ? AND l.noun = ? AND l.name = ? AND l.id > ? ORDER BY l.id LIMIT ?;

-- name: set_record
INSERT INTO record (tenant, noun, id, revision, body, created, changed)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET revision = excluded.revision, body = excluded.body,
   changed = excluded.changed;

-- name: drop_record
DELETE FROM record WHERE tenant = ? AND noun = ? AND id = ?;

-- name: handle
SELECT tenant, noun, id FROM handle WHERE name = ?;

-- name: drop_handles
DELETE FROM handle WHERE tenant = ? AND noun = ? AND id = ?;

-- name: free_handle
DELETE FROM handle WHERE name = ?;

-- name: add_handle
INSERT INTO handle (name, tenant, noun, id) VALUES (?, ?, ?, ?);

-- name: drop_links
DELETE FROM link WHERE tenant = ? AND noun = ? AND id = ?;

-- name: add_link
INSERT INTO link (tenant, noun, name, id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: shelf
SELECT revision FROM shelf WHERE tenant = ? AND noun = ?;

-- name: shelves
SELECT w.key, s.revision FROM json_each(?) AS w
  CROSS JOIN shelf AS s ON s.tenant = w.value ->> 0 AND s.noun = w.value ->> 1;

-- name: raise_shelf
INSERT INTO shelf (tenant, noun, revision) VALUES (?, ?, 1)
ON CONFLICT DO UPDATE SET revision = revision + 1;

-- name: add_audit
INSERT INTO audit (tenant, at, by, why, subjects) VALUES (?, ?, ?, ?, ?);

-- name: audit
SELECT id, tenant, at, by, why, subjects FROM audit
 WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: set_used
INSERT INTO usage (id, at) VALUES (?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at);

-- name: used
SELECT w.key, u.at FROM json_each(?) AS w CROSS JOIN usage AS u ON u.id = w.value;

-- name: add_run
INSERT INTO run (id, tenant, scope, workflow, mode, status, by, started, ended, parent, replay_of,
                 kept, variables, events)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, 1);

-- name: add_layer
INSERT INTO run_layer (run, place, scope, revision) VALUES (?, ?, ?, ?);

-- name: runs
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.by, r.started, r.ended,
       r.parent, r.replay_of, r.kept, r.variables
  FROM json_each(?) AS w
  CROSS JOIN run AS r ON r.tenant = ? AND r.id = w.value JOIN scope AS s ON s.id = r.scope;

-- name: runs_listed
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.by, r.started, r.ended,
       r.parent, r.replay_of, r.kept, r.variables
  FROM run AS r JOIN scope AS s ON s.id = r.scope
 WHERE r.tenant = ?1 AND r.id < ?2 AND (?4 IS NULL OR (s.kind = ?4 AND s.name = ?5))
 ORDER BY r.id DESC LIMIT ?3;

-- name: newest_runs
SELECT r.id, r.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.by, r.started, r.ended,
       r.parent, r.replay_of, r.kept, r.variables
  FROM json_each(?1) AS w
  CROSS JOIN scope AS s ON s.tenant = w.value ->> 0 AND s.kind = w.value ->> 1 AND s.name = w.value ->> 2
  CROSS JOIN run AS r ON r.tenant = ?2 AND r.id =
       (SELECT max(l.id) FROM run AS l WHERE l.scope = s.id AND l.tenant = ?2);

-- name: layers
SELECT l.run, s.tenant, s.kind, s.name, l.revision
  FROM json_each(?) AS w
  CROSS JOIN run_layer AS l ON l.run = w.value JOIN scope AS s ON s.id = l.scope
 ORDER BY l.run, l.place;

-- name: change_run
UPDATE run SET status = ?, ended = ?, kept = ?
 WHERE id = ? AND tenant = ? AND status = ? AND kept = ?;

-- name: drop_layers
DELETE FROM run_layer WHERE run = ?;

-- name: next_in_run
UPDATE run SET events = events + 1 WHERE id = ? AND tenant = ? RETURNING events;

-- name: receipt
SELECT fingerprint, claimed, versions, status, sealed FROM receipt
 WHERE tenant = ? AND endpoint = ? AND key = ?;

-- name: set_receipt
INSERT INTO receipt (tenant, endpoint, key, fingerprint, claimed) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, claimed = excluded.claimed,
   versions = NULL, status = NULL, sealed = NULL;

-- name: mark_receipt
UPDATE receipt SET versions = ? WHERE tenant = ? AND endpoint = ? AND key = ?;

-- name: settle_receipt
UPDATE receipt SET status = ?, sealed = ?
 WHERE tenant = ? AND endpoint = ? AND key = ? AND status IS NULL;

-- name: drop_receipt
DELETE FROM receipt
 WHERE tenant = ? AND endpoint = ? AND key = ? AND versions IS NULL AND status IS NULL;

-- name: mark
SELECT cursor FROM mark WHERE name = 'deliveries';

-- name: set_mark
INSERT INTO mark (name, cursor) VALUES ('deliveries', ?)
ON CONFLICT DO UPDATE SET cursor = excluded.cursor;

-- name: add_delivery
INSERT INTO delivery (id, tenant, webhook, type, body, state, created, due, tries)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: lease
UPDATE delivery SET due = ?2
 WHERE id IN (SELECT id FROM delivery WHERE state = 'pending' AND due <= ?1 ORDER BY due LIMIT ?3)
RETURNING id, tenant, webhook, type, body, state, created, due, tries;

-- name: settle_delivery
UPDATE delivery SET state = ?, due = ?, tries = ? WHERE id = ?;

-- name: add_attempt
INSERT INTO attempt (delivery, place, at, status, problem, took)
VALUES (?1, (SELECT coalesce(max(place), 0) + 1 FROM attempt WHERE delivery = ?1), ?2, ?3, ?4, ?5);

-- name: deliveries
SELECT d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created, d.due, d.tries
  FROM json_each(?) AS w CROSS JOIN delivery AS d ON d.id = w.value WHERE d.tenant = ?;

-- name: deliveries_listed
SELECT id, tenant, webhook, type, body, state, created, due, tries FROM delivery
 WHERE tenant = ? AND webhook = ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: attempts
SELECT a.delivery, a.at, a.status, a.problem, a.took
  FROM json_each(?) AS w CROSS JOIN attempt AS a ON a.delivery = w.value ORDER BY a.delivery, a.place;

-- name: replay_delivery
UPDATE delivery SET state = 'pending', due = ?, tries = 0 WHERE id = ? AND tenant = ?;

-- name: drop_words
DELETE FROM word WHERE tenant = ? AND noun = ? AND id = ?;

-- name: add_word
INSERT OR IGNORE INTO word (tenant, noun, link, word, id) VALUES (?, ?, ?, ?, ?);

-- name: ids_by_words
SELECT w.id, count(DISTINCT q.key) AS begun, sum(w.word = q.value) AS whole
  FROM json_each(?1) AS q
 CROSS JOIN word AS w ON w.tenant = ?2 AND w.noun = ?3 AND w.link = ?4
        AND w.word >= q.value AND w.word < q.value || char(1114111)
 GROUP BY w.id ORDER BY begun DESC, whole DESC, w.id DESC LIMIT ?5;

-- name: add_recall
INSERT OR IGNORE INTO recall (tenant, agent, memory, id, query, score, at)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: tallies
SELECT memory, count(*) AS hits, avg(score), count(DISTINCT query),
       count(DISTINCT at / 86400000), max(at)
  FROM recall WHERE tenant = ? AND agent = ? GROUP BY memory ORDER BY hits DESC, memory LIMIT ?;

-- name: recalls_since
SELECT memory, count(*) FROM recall WHERE tenant = ? AND agent = ? AND at >= ? GROUP BY memory;

-- name: drop_recalls
DELETE FROM recall WHERE tenant = ? AND agent = ? AND memory = ? AND at < ?;

-- name: prune_recalls
DELETE FROM recall WHERE tenant = ? AND agent = ? AND at < ?;

-- name: records_linked_everywhere
SELECT r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM shelf AS s
 CROSS JOIN link AS l ON l.tenant = s.tenant AND l.noun = s.noun AND l.name = ?2 AND l.id > ?3
 CROSS JOIN record AS r ON r.tenant = l.tenant AND r.noun = l.noun AND r.id = l.id
 WHERE s.noun = ?1 ORDER BY l.id, l.tenant LIMIT ?4;

-- name: links_and_bodies
SELECT l.tenant, l.noun, l.name, l.id, r.body
  FROM link AS l JOIN record AS r ON r.tenant = l.tenant AND r.noun = l.noun AND r.id = l.id
 WHERE l.noun = ?;

-- name: forget_words
DELETE FROM word;

-- name: old_versions
SELECT v.scope, v.path, v.version
  FROM scope AS s
  LEFT JOIN record AS p ON p.tenant = s.tenant AND p.noun = 'policy' AND p.id = 'policy'
 CROSS JOIN entry AS e ON e.scope = s.id
 CROSS JOIN version AS v ON v.scope = e.scope AND v.path = e.path AND v.version <= e.version
       - coalesce(json_extract(p.body, CASE WHEN s.kind = 'workspace' AND s.name LIKE 'ws\_%' ESCAPE '\'
                                            THEN '$.sharedLimits.maxVersions'
                                            ELSE '$.limits.maxVersions' END), 100)
 WHERE NOT EXISTS (
       SELECT 1 FROM run_layer AS l
        WHERE l.scope = v.scope AND l.revision >= v.revision AND l.revision <
              (SELECT n.revision FROM version AS n
                WHERE n.scope = v.scope AND n.path = v.path AND n.version > v.version
                ORDER BY n.version LIMIT 1))
   AND NOT EXISTS (
       SELECT 1 FROM record AS r
        WHERE r.tenant = s.tenant AND r.noun = 'agent' AND r.id = s.name AND s.kind = 'agent'
          AND json_type(r.body, '$.config.workspaceGit.enabled') = 'true')
 LIMIT 100000;

-- name: old_contents
SELECT id FROM content
 WHERE at < ? AND id NOT IN (SELECT content FROM version WHERE content IS NOT NULL
                             UNION ALL SELECT base FROM version WHERE base IS NOT NULL);

-- name: drop_content
DELETE FROM content WHERE id = ?;

-- name: outside_digests
SELECT DISTINCT digest FROM content WHERE body IS NULL;

-- name: collect_receipts
DELETE FROM receipt WHERE claimed < ?;

-- name: collect_attempts
DELETE FROM attempt WHERE delivery IN
       (SELECT id FROM delivery WHERE state <> 'pending' AND created < ?);

-- name: collect_deliveries
DELETE FROM delivery WHERE state <> 'pending' AND created < ?;

-- name: old_events
SELECT id FROM event WHERE at < ?
   AND id <= coalesce((SELECT CAST(cursor AS INTEGER) FROM mark WHERE name = 'deliveries'), 0)
   AND (run IS NULL OR NOT EXISTS (
        SELECT 1 FROM run AS r WHERE r.tenant = event.tenant AND r.id = event.run AND r.kept = 1));

-- name: drop_event
DELETE FROM event WHERE id = ?;

-- name: continue_contents
INSERT INTO counter (name, value) SELECT 'content', max(id) FROM content HAVING max(id) IS NOT NULL
ON CONFLICT DO UPDATE SET value = max(value, excluded.value);

-- name: continue_events
INSERT INTO counter (name, value) SELECT 'event', max(id) FROM event HAVING max(id) IS NOT NULL
ON CONFLICT DO UPDATE SET value = max(value, excluded.value);

-- name: migrations
SELECT name FROM migration ORDER BY name;

-- name: start_session
INSERT INTO session (tenant, id, agent, mode, plugin, started, ended, entries, last)
VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING;

-- name: sessions
SELECT s.tenant, s.id, s.agent, s.mode, s.plugin, s.started, s.ended, s.entries, s.last
  FROM json_each(?) AS w CROSS JOIN session AS s ON s.tenant = w.value ->> 0 AND s.id = w.value ->> 1;

-- name: extend_session
UPDATE session SET entries = entries + ?, last = max(last, ?)
 WHERE tenant = ? AND id = ? AND agent = ? AND ended IS NULL
RETURNING tenant, id, agent, mode, plugin, started, ended, entries, last;

-- name: last_utterance
SELECT coalesce(max(id), 0) FROM utterance;

-- name: add_utterance
INSERT INTO utterance (id, tenant, session, number, at, role, content, message, plugin, sender)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_words
INSERT INTO utterance_text (rowid, owner, words) VALUES (?, ?, ?);

-- name: close_session
UPDATE session SET ended = ? WHERE tenant = ? AND id = ? AND agent = ? AND ended IS NULL;

-- name: sessions_counted
SELECT w.key, (SELECT count(*) FROM session AS s WHERE s.tenant = ?2 AND s.agent = w.value)
  FROM json_each(?1) AS w ORDER BY w.key;

-- name: sessions_listed
SELECT tenant, id, agent, mode, plugin, started, ended, entries, last
  FROM session
 WHERE tenant = ?1 AND agent = ?2 AND (last, id) < (?3, ?4) AND (?5 IS NULL OR mode = ?5)
 ORDER BY last DESC, id DESC LIMIT ?6;

-- name: utterances
SELECT number, at, role, content, message, plugin, sender FROM utterance
 WHERE tenant = ? AND session = ? AND number > ? ORDER BY number LIMIT ?;

-- name: utterances_found
SELECT u.id
  FROM utterance_text AS t
  JOIN utterance AS u ON u.id = t.rowid
  JOIN session AS s ON s.tenant = u.tenant AND s.id = u.session
 WHERE utterance_text MATCH ?1 AND s.tenant = ?2 AND s.agent = ?3 AND (?4 IS NULL OR s.mode = ?4)
 ORDER BY u.at DESC, u.session DESC, u.number DESC LIMIT ?5;

-- name: utterances_by_id
SELECT u.session, u.number, u.at, u.role, u.content, u.message, u.plugin, u.sender
  FROM json_each(?) AS w CROSS JOIN utterance AS u ON u.id = w.value ORDER BY w.key;

-- name: sessions_touched
SELECT tenant, id, agent, mode, plugin, started, ended, entries, last
  FROM session WHERE last >= ? AND (last, tenant, id) > (?, ?, ?)
 ORDER BY last, tenant, id LIMIT ?;

-- name: drop_session
DELETE FROM session WHERE tenant = ? AND id = ? AND entries = ?;

-- name: words_of_session
SELECT u.id, u.content FROM utterance AS u JOIN utterance_text_docsize AS d ON d.id = u.id
 WHERE u.tenant = ? AND u.session = ?;

-- name: drop_said_words
INSERT INTO utterance_text (utterance_text, rowid, owner, words) VALUES ('delete', ?, ?, ?);

-- name: drop_utterances
DELETE FROM utterance WHERE tenant = ? AND session = ?;

-- name: drop_all_words
INSERT INTO utterance_text (utterance_text) VALUES ('delete-all');

-- name: utterances_counted
SELECT count(*) FROM utterance;

-- name: utterances_unindexed
SELECT u.tenant, u.session, u.number, u.id, s.agent, u.content, d.id IS NOT NULL
  FROM utterance AS u JOIN session AS s ON s.tenant = u.tenant AND s.id = u.session
  LEFT JOIN utterance_text_docsize AS d ON d.id = u.id
 WHERE (u.tenant, u.session, u.number) > (?, ?, ?)
 ORDER BY u.tenant, u.session, u.number LIMIT ?;

-- Named statements. If a key is joined from two tables, OFFSET 0 keeps the planner from using only
-- a part of it and scanning the rest.

-- name: encoding
SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database();

-- name: migration_lock
SELECT pg_advisory_xact_lock(hashtextextended('carrel/migration', 0));

-- name: try_turn
SELECT pg_try_advisory_lock($1);

-- name: still_there
SELECT true;

-- name: migration_table
CREATE TABLE IF NOT EXISTS migration (
    name     text COLLATE "C" PRIMARY KEY,
    checksum text NOT NULL,
    at       bigint NOT NULL
);

-- name: migrations
SELECT name, checksum FROM migration ORDER BY name;

-- name: add_migration
INSERT INTO migration (name, checksum, at) VALUES ($1, $2, $3);

-- name: events_from_elsewhere
SELECT EXISTS (SELECT FROM event WHERE xid >= pg_snapshot_xmax(pg_current_snapshot()));

-- name: take_everything
SELECT take_everything();

-- name: rebase
SELECT take_everything(), rebase_events();

-- name: apply_commits
SELECT * FROM apply_commits(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::text::bigint[],
    $16::text::boolean[], $17::text::integer[], $18::text::bigint[], $19::text::bigint[],
    $20::text::bigint[], $21::text::bigint[], $22::text::integer[], $23::text::integer[],
    $24::text::integer[], $25::text::integer[], $26::text::integer[], $27::text::integer[],
    $28::text::bigint[], $29::text::boolean[], $30::text::integer[], $31::text::bigint[],
    $32::text::integer[], $33::text::bigint[], $34::text::bigint[], $35::text::integer[],
    $36::text::integer[], $37::text::integer[], $38::text::integer[], $39::text::integer[],
    $40::text::integer[], $41::text::integer[], $42::text::boolean[]);

-- name: revisions
SELECT coalesce(s.revision, 0)
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w (tenant, kind, name, n)
  LEFT JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
 ORDER BY w.n;

-- name: heads
SELECT coalesce(s.revision, 0), e.version, e.revision, e.at, e.content, e.digest, e.size, e.type,
       e.base, b.digest, b.size, (SELECT value FROM counter WHERE name = 'records')
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
    AS w (tenant, kind, name, path, n)
  LEFT JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
  LEFT JOIN LATERAL (
       SELECT * FROM entry AS h WHERE h.scope = s.id AND h.path = w.path OFFSET 0) AS e ON true
  LEFT JOIN content AS b ON b.id = e.base
 ORDER BY w.n;

-- name: heads_then
SELECT coalesce(w.revision, s.revision, 0), h.version, h.revision, h.at, h.content, h.digest, h.size,
       h.type, h.base, b.digest, b.size, (SELECT value FROM counter WHERE name = 'records')
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
    AS w (tenant, kind, name, path, revision, n)
  LEFT JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
  LEFT JOIN LATERAL (
       SELECT e.version, e.revision, e.at, e.content, e.digest, e.size, e.type, e.base
         FROM entry AS e
        WHERE w.revision IS NULL AND e.scope = s.id AND e.path = w.path
       UNION ALL
       (SELECT v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base
          FROM version AS v
         WHERE v.scope = s.id AND v.path = w.path AND v.revision <= w.revision
         ORDER BY v.version DESC LIMIT 1)) AS h ON true
  LEFT JOIN content AS b ON b.id = h.base
 ORDER BY w.n;

-- name: trees
SELECT w.n, coalesce(w.revision, s.revision, 0), h.path, h.version, h.revision, h.at, h.content,
       h.digest, h.size, h.type, h.base, b.digest, b.size,
       (SELECT value FROM counter WHERE name = 'records')
  FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY
    AS w (tenant, kind, name, revision, n)
  LEFT JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
  LEFT JOIN LATERAL (
       SELECT e.path, e.version, e.revision, e.at, e.content, e.digest, e.size, e.type, e.base
         FROM entry AS e
        WHERE e.scope = s.id AND e.path >= $5 AND ($6::text IS NULL OR e.path < $6)
          AND e.content IS NOT NULL AND (w.revision IS NULL OR e.revision <= w.revision)
       UNION ALL
       SELECT e.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base
         FROM entry AS e
        CROSS JOIN LATERAL (
              SELECT * FROM version AS n
               WHERE n.scope = e.scope AND n.path = e.path AND n.revision <= w.revision
               ORDER BY n.version DESC LIMIT 1) AS v
        WHERE e.scope = s.id AND e.path >= $5 AND ($6::text IS NULL OR e.path < $6)
          AND e.revision > w.revision AND v.content IS NOT NULL) AS h ON true
  LEFT JOIN content AS b ON b.id = h.base;

-- name: versions
SELECT w.n, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base, b.digest,
       b.size, v.by, v.why, v.run
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
    AS w (tenant, kind, name, path, version, n)
  JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
 CROSS JOIN LATERAL (
       SELECT * FROM version AS h
        WHERE h.scope = s.id AND h.path = w.path AND h.version = w.version OFFSET 0) AS v
  LEFT JOIN content AS b ON b.id = v.base;

-- name: history
SELECT v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base, b.digest, b.size,
       v.by, v.why, v.run
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id AND v.path = $4 AND v.version < $5
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3
 ORDER BY v.version DESC LIMIT $6;

-- name: log
SELECT v.path, v.version, v.revision, v.at, v.content, v.digest, v.size, v.type, v.base, b.digest,
       b.size, v.by, v.why, v.run
  FROM scope AS s
  JOIN version AS v ON v.scope = s.id
  LEFT JOIN content AS b ON b.id = v.base
 WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3
   AND (v.revision, v.path, v.version) > ($4, $5, $6)
 ORDER BY v.revision, v.path, v.version LIMIT $7;

-- name: unbroken
SELECT coalesce(max(v.revision), 0)
  FROM scope AS s JOIN version AS v ON v.scope = s.id AND v.version > 1
 WHERE s.tenant = $1 AND s.kind = $2 AND s.name = $3
   AND NOT EXISTS (SELECT FROM version AS p
                    WHERE p.scope = v.scope AND p.path = v.path AND p.version = v.version - 1);

-- name: bodies
SELECT id, body FROM content WHERE id = ANY ($1::bigint[]);

-- name: records
SELECT w.n, r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM unnest($1::text[]) WITH ORDINALITY AS w (id, n)
  JOIN record AS r ON r.tenant = $2 AND r.noun = $3 AND r.id = w.id;

-- name: records_named
SELECT w.n, r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM unnest($1::text[]) WITH ORDINALITY AS w (name, n)
  JOIN handle AS h ON h.name = w.name
  JOIN record AS r ON r.tenant = h.tenant AND r.noun = h.noun AND r.id = h.id;

-- name: records_listed
SELECT tenant, noun, id, revision, body, created, changed FROM record
 WHERE tenant = $1 AND noun = $2 AND id > $3 ORDER BY id LIMIT $4;

-- name: records_everywhere
SELECT r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM shelf AS s JOIN record AS r ON r.tenant = s.tenant AND r.noun = s.noun
 WHERE s.noun = $1 AND r.id > $2 ORDER BY r.id, r.tenant LIMIT $3;

-- name: records_counted
SELECT w.n, count(*) FROM unnest($1::text[]) WITH ORDINALITY AS w (name, n)
  JOIN link AS l ON l.tenant = $2 AND l.noun = $3 AND l.name = w.name GROUP BY w.n;

-- name: records_linked
SELECT r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM link AS l JOIN record AS r ON r.tenant = l.tenant AND r.noun = l.noun AND r.id = l.id
 WHERE l.tenant = $1 AND l.noun = $2 AND l.name = $3 AND l.id > $4 ORDER BY l.id LIMIT $5;

-- name: records_linked_everywhere
SELECT r.tenant, r.noun, r.id, r.revision, r.body, r.created, r.changed
  FROM shelf AS s
  JOIN link AS l ON l.tenant = s.tenant AND l.noun = s.noun AND l.name = $2 AND l.id > $3
  JOIN record AS r ON r.tenant = l.tenant AND r.noun = l.noun AND r.id = l.id
 WHERE s.noun = $1 ORDER BY l.id, l.tenant LIMIT $4;

-- name: shelves
SELECT shelf_revisions($1, $2);

-- name: records_revision
SELECT value FROM counter WHERE name = 'records';

-- name: use
INSERT INTO usage AS u (id, at) SELECT * FROM unnest($1::text[], $2::bigint[]) AS w (id, at)
ON CONFLICT (id) DO UPDATE SET at = excluded.at WHERE u.at < excluded.at;

-- name: used
SELECT w.n, u.at FROM unnest($1::text[]) WITH ORDINALITY AS w (id, n) JOIN usage AS u ON u.id = w.id;

-- name: audit
SELECT id, tenant, at, by, why, subjects FROM audit
 WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3;

-- name: start_runs
SELECT start_runs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                  $19, $20, $21, $22);

-- name: change_run
SELECT change_run($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: runs
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.by, r.started,
       r.ended, r.parent, r.replay_of, r.kept, r.variables,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision) ORDER BY l.place)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM unnest($2::text[]) AS w (id)
  JOIN run AS r ON r.id = w.id AND r.tenant = $1
  JOIN scope AS s ON s.id = r.scope;

-- name: runs_listed
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.by, r.started,
       r.ended, r.parent, r.replay_of, r.kept, r.variables,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision) ORDER BY l.place)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM run AS r JOIN scope AS s ON s.id = r.scope
 WHERE r.tenant = $1 AND ($2::text IS NULL OR r.id < $2)
 ORDER BY r.id DESC LIMIT $3;

-- name: runs_of_scope
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.by, r.started,
       r.ended, r.parent, r.replay_of, r.kept, r.variables,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision) ORDER BY l.place)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM scope AS s JOIN run AS r ON r.scope = s.id
 WHERE s.tenant = $4 AND s.kind = $5 AND s.name = $6 AND r.tenant = $1
   AND ($2::text IS NULL OR r.id < $2)
 ORDER BY r.id DESC LIMIT $3;

-- name: newest_runs
SELECT r.id, r.tenant, s.tenant, s.kind, s.name, r.workflow, r.mode, r.status, r.by, r.started,
       r.ended, r.parent, r.replay_of, r.kept, r.variables,
       (SELECT jsonb_agg(jsonb_build_array(f.tenant, f.kind, f.name, l.revision) ORDER BY l.place)
          FROM run_layer AS l JOIN scope AS f ON f.id = l.scope WHERE l.run = r.id)
  FROM unnest($2::text[], $3::text[], $4::text[]) AS w (tenant, kind, name)
  JOIN scope AS s ON s.tenant = w.tenant AND s.kind = w.kind AND s.name = w.name
 CROSS JOIN LATERAL (
       SELECT * FROM run AS n WHERE n.scope = s.id AND n.tenant = $1
        ORDER BY n.id DESC LIMIT 1) AS r;

-- name: events_after
SELECT * FROM events_after($1::text::xid8, $2, $3, $4, $5, $6, $7, $8);

-- name: latest_event
SELECT event_horizon()::text, (SELECT last_value FROM event_id_seq);

-- name: claim_receipt
SELECT * FROM claim_receipt($1, $2, $3, $4, $5, $6);

-- name: settle_receipt
UPDATE receipt SET status = $4, sealed = $5
 WHERE tenant = $1 AND endpoint = $2 AND key = $3 AND status IS NULL;

-- name: drop_receipt
DELETE FROM receipt
 WHERE tenant = $1 AND endpoint = $2 AND key = $3 AND versions IS NULL AND status IS NULL;

-- name: mark
SELECT cursor FROM mark WHERE name = 'deliveries';

-- name: enqueue_deliveries
SELECT enqueue_deliveries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: lease_deliveries
WITH ripe AS (
    SELECT d.id, d.due FROM delivery AS d WHERE d.state = 'pending' AND d.due <= $1
     ORDER BY d.due, d.id LIMIT $3 FOR UPDATE SKIP LOCKED
), leased AS (
    UPDATE delivery AS d SET due = $2 FROM ripe WHERE d.id = ripe.id
    RETURNING d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created, d.due, d.tries,
              ripe.due AS was
)
SELECT id, tenant, webhook, type, body, state, created, due, tries FROM leased ORDER BY was, id;

-- name: settle_deliveries
SELECT settle_deliveries($1, $2, $3, $4, $5, $6, $7, $8);

-- name: deliveries
SELECT d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created, d.due, d.tries
  FROM unnest($2::text[]) AS w (id) JOIN delivery AS d ON d.id = w.id AND d.tenant = $1;

-- name: deliveries_listed
SELECT d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created, d.due, d.tries,
       (SELECT jsonb_agg(jsonb_build_array(a.at, a.status, a.problem, a.took) ORDER BY a.place)
          FROM attempt AS a WHERE a.delivery = d.id)
  FROM delivery AS d
 WHERE d.tenant = $1 AND d.webhook = $2 AND ($3::text IS NULL OR d.id < $3)
 ORDER BY d.id DESC LIMIT $4;

-- name: replay_delivery
UPDATE delivery SET state = 'pending', due = $3, tries = 0 WHERE id = $1 AND tenant = $2;

-- name: ping
SELECT 1;

-- name: is_empty
SELECT NOT EXISTS (SELECT FROM scope) AND NOT EXISTS (SELECT FROM record)
   AND NOT EXISTS (SELECT FROM event) AND NOT EXISTS (SELECT FROM content);

-- name: frozen_counter
SELECT name, CASE name WHEN 'content' THEN greatest(value, (SELECT max(id) FROM content))
                       WHEN 'event' THEN greatest_event() ELSE value END
  FROM counter WHERE name <> 'loaded' ORDER BY name;

-- name: frozen_mark
SELECT name, portable_mark(cursor)::text FROM mark ORDER BY name;

-- name: prunable_scopes
SELECT s.id, s.tenant, s.kind, s.name, k.keep
  FROM scope AS s
  LEFT JOIN unnest($1::text[], $2::bigint[], $3::bigint[]) AS p (tenant, keep, shared)
    ON p.tenant = s.tenant
 CROSS JOIN LATERAL (
       SELECT coalesce(CASE WHEN s.kind = 'workspace' AND starts_with(s.name, 'ws_')
                            THEN p.shared ELSE p.keep END, 100) AS keep) AS k
 WHERE EXISTS (SELECT FROM entry AS e JOIN version AS v ON v.scope = e.scope AND v.path = e.path
                WHERE e.scope = s.id AND e.version > k.keep AND v.version <= e.version - k.keep);

-- name: prune_scope
SELECT prune_scope($1, $2, $3);

-- name: policies
SELECT tenant, body FROM record WHERE noun = 'policy' AND id = 'policy';

-- name: unused_contents
SELECT c.id FROM content AS c
 WHERE c.id > $1 AND c.at < $2
   AND NOT EXISTS (SELECT FROM version AS v WHERE v.content = c.id)
   AND NOT EXISTS (SELECT FROM version AS v WHERE v.base = c.id)
 ORDER BY c.id LIMIT $3;

-- name: drop_contents
SELECT drop_contents($1, $2);

-- name: drop_receipts
WITH gone AS (DELETE FROM receipt WHERE claimed < $1 RETURNING 1) SELECT count(*) FROM gone;

-- name: drop_attempts
WITH gone AS (
    DELETE FROM attempt AS a USING delivery AS d
     WHERE d.id = a.delivery AND d.state <> 'pending' AND d.created < $1 RETURNING 1
)
SELECT count(*) FROM gone;

-- name: drop_deliveries
WITH gone AS (
    DELETE FROM delivery WHERE state <> 'pending' AND created < $1 RETURNING 1
)
SELECT count(*) FROM gone;

-- name: drop_events
WITH gone AS (
    DELETE FROM event AS e USING mark AS m
     WHERE m.name = 'deliveries' AND e.at < $1
       AND (e.xid, e.id) <= (split_part(m.cursor, '.', 1)::xid8, split_part(m.cursor, '.', 2)::bigint)
       AND NOT EXISTS (SELECT FROM run AS r WHERE r.id = e.run AND r.kept = 1)
    RETURNING e.id
), noted AS (
    UPDATE counter SET value = greatest(value, (SELECT max(id) FROM gone)) WHERE name = 'event'
)
SELECT count(*) FROM gone;

-- name: outside_digests
SELECT DISTINCT digest FROM content WHERE body IS NULL;

-- name: load_counter
INSERT INTO counter (name, value) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: loading
ALTER TABLE event ALTER COLUMN xid SET DEFAULT '0';

-- name: loaded
ALTER TABLE event ALTER COLUMN xid SET DEFAULT pg_current_xact_id();

-- name: continue_numbers
SELECT continue_numbers();

-- name: load_marks
UPDATE mark SET cursor = '0.' || cursor;

-- name: note_loaded
UPDATE counter SET value = greatest_event() WHERE name = 'loaded';

-- name: start_sessions
INSERT INTO session (tenant, id, agent, mode, plugin, started, ended, entries, last)
SELECT n.*, 0, n.started
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
    AS n (tenant, id, agent, mode, plugin, started, ended)
 ORDER BY 1, 2
ON CONFLICT DO NOTHING;

-- name: sessions
SELECT s.tenant, s.id, s.agent, s.mode, s.plugin, s.started, s.ended, s.entries, s.last
  FROM unnest($1::text[], $2::text[]) AS w (tenant, id)
  JOIN session AS s ON s.tenant = w.tenant AND s.id = w.id;

-- name: append_utterances
SELECT a.place, (a.became).* FROM append_utterances(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS a;

-- name: close_sessions
UPDATE session SET ended = $4
 WHERE tenant = $1 AND id = ANY ($3::text[]) AND agent = $2 AND ended IS NULL;

-- name: sessions_counted
SELECT w.n, (SELECT count(*) FROM session AS s WHERE s.tenant = $2 AND s.agent = w.agent)
  FROM unnest($1::text[]) WITH ORDINALITY AS w (agent, n) ORDER BY w.n;

-- name: sessions_listed
SELECT tenant, id, agent, mode, plugin, started, ended, entries, last
  FROM session
 WHERE tenant = $1 AND agent = $2 AND (last, id) < ($3, $4) AND ($5::text IS NULL OR mode = $5)
 ORDER BY last DESC, id DESC LIMIT $6;

-- name: utterances
SELECT number, at, role, content, message, plugin, sender
  FROM (SELECT u.*, sum(octet_length(u.content)) OVER (ORDER BY u.number)
                    - octet_length(u.content) AS before
          FROM (SELECT * FROM utterance
                 WHERE tenant = $1 AND session = $2 AND number > $3 ORDER BY number LIMIT $4) AS u
       ) AS x
 WHERE before < $5 ORDER BY number;

-- name: utterances_found
SELECT session, number, at, role, content, message, plugin, sender
  FROM (SELECT u.*, sum(octet_length(u.content)) OVER (ORDER BY u.at DESC, u.session DESC, u.number DESC)
                    - octet_length(u.content) AS before
          FROM (SELECT u.*
                  FROM utterance_text AS t
                  JOIN utterance AS u ON u.tenant = t.tenant AND u.session = t.session
                                     AND u.number = t.number
                  JOIN session AS s ON s.tenant = u.tenant AND s.id = u.session
                 WHERE t.words @@ $1::text::tsquery AND s.tenant = $2 AND s.agent = $3
                   AND ($4::text IS NULL OR s.mode = $4)
                 ORDER BY u.at DESC, u.session DESC, u.number DESC LIMIT $5) AS u
       ) AS x
 WHERE before < $6 ORDER BY at DESC, session DESC, number DESC;

-- name: sessions_touched
SELECT tenant, id, agent, mode, plugin, started, ended, entries, last
  FROM session WHERE last >= $1 AND (last, tenant, id) > ($2, $3, $4)
 ORDER BY last, tenant, id LIMIT $5;

-- name: drop_sessions
SELECT drop_sessions($1, $2, $3);

-- name: drop_all_words
TRUNCATE utterance_text;

-- name: utterances_counted
SELECT count(*) FROM utterance;

-- name: utterances_unindexed
SELECT u.tenant, u.session, u.number, s.agent, u.content,
       EXISTS (SELECT FROM utterance_text AS t
                WHERE t.tenant = u.tenant AND t.session = u.session AND t.number = u.number)
  FROM utterance AS u JOIN session AS s ON s.tenant = u.tenant AND s.id = u.session
 WHERE (u.tenant, u.session, u.number) > ($1, $2, $3)
 ORDER BY u.tenant, u.session, u.number LIMIT $4;

-- name: add_words
INSERT INTO utterance_text (tenant, session, number, words)
SELECT u.tenant, u.session, u.number, w.words::tsvector
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) AS w (tenant, session, number, words)
  JOIN utterance AS u ON u.tenant = w.tenant AND u.session = w.session AND u.number = w.number
ON CONFLICT DO NOTHING;

-- name: ids_by_words
SELECT w.id, count(DISTINCT q.n) AS begun, count(*) FILTER (WHERE w.word = q.word) AS whole
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS q (word, upto, n)
  JOIN word AS w ON w.tenant = $3 AND w.noun = $4 AND w.link = $5
                AND w.word >= q.word AND w.word < q.upto
 GROUP BY w.id ORDER BY begun DESC, whole DESC, w.id DESC LIMIT $6;

-- name: add_recalls
INSERT INTO recall (tenant, agent, memory, id, query, score, at)
SELECT $1, n.agent, n.memory, n.id, n.query, n.score, n.at
  FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::double precision[], $7::bigint[])
    AS n (agent, memory, id, query, score, at)
ON CONFLICT DO NOTHING;

-- name: tallies
SELECT memory, count(*) AS hits, avg(score), count(DISTINCT query),
       count(DISTINCT at / 86400000), max(at)
  FROM recall WHERE tenant = $1 AND agent = $2
 GROUP BY memory ORDER BY hits DESC, memory LIMIT $3;

-- name: recalls_since
SELECT memory, count(*) FROM recall WHERE tenant = $1 AND agent = $2 AND at >= $3 GROUP BY memory;

-- name: drop_recalls
WITH gone AS (
    DELETE FROM recall WHERE tenant = $1 AND agent = $2 AND memory = ANY ($3::text[]) AND at < $4
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: prune_recalls
WITH gone AS (DELETE FROM recall WHERE tenant = $1 AND agent = $2 AND at < $3 RETURNING 1)
SELECT count(*) FROM gone;

-- name: links_and_bodies
SELECT l.tenant, l.noun, l.name, l.id, r.body
  FROM link AS l JOIN record AS r ON r.tenant = l.tenant AND r.noun = l.noun AND r.id = l.id
 WHERE l.noun = $1;

-- name: forget_words
DELETE FROM word;

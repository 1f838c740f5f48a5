CREATE TABLE counter (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE scope (
    id       INTEGER PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    files    INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    UNIQUE (tenant, kind, name)
);

CREATE TABLE content (
    id         INTEGER PRIMARY KEY,
    digest     BLOB    NOT NULL,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body       BLOB
);

CREATE TABLE entry (
    scope    INTEGER NOT NULL REFERENCES scope,
    path     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    content  INTEGER REFERENCES content,
    digest   BLOB,
    size     INTEGER,
    base     INTEGER REFERENCES content,
    type     TEXT,
    version_offset INTEGER NOT NULL DEFAULT 0,
    mode     INTEGER,
    mtime_ns INTEGER,
    file_id  TEXT,
    reviewed TEXT,
    PRIMARY KEY (scope, path)
) WITHOUT ROWID;

CREATE TABLE version (
    scope    INTEGER NOT NULL REFERENCES scope,
    path     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    content  INTEGER REFERENCES content,
    digest   BLOB,
    size     INTEGER,
    base     INTEGER REFERENCES content,
    type     TEXT,
    author   TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    run      TEXT,
    version_offset INTEGER NOT NULL DEFAULT 0,
    mode     INTEGER,
    mtime_ns INTEGER,
    redacted INTEGER NOT NULL DEFAULT 0,
    file_id  TEXT,
    reviewed TEXT,
    source   TEXT,
    PRIMARY KEY (scope, path, version)
) WITHOUT ROWID;

CREATE TABLE run (
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    scope         INTEGER NOT NULL REFERENCES scope,
    workflow      TEXT    NOT NULL,
    mode          TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    author        TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    parent        TEXT,
    replay_of     TEXT,
    snapshot_kept INTEGER NOT NULL,
    variables     TEXT    NOT NULL,
    event_count   INTEGER NOT NULL,
    session       TEXT,
    reported_at   INTEGER NOT NULL,
    abandoned_at  INTEGER,
    reason        TEXT,
    prompt        TEXT,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

CREATE INDEX run_by_status ON run (tenant, status, id);
CREATE INDEX run_by_scope ON run (scope, tenant, id);
CREATE INDEX run_by_session ON run (scope, session, id) WHERE session IS NOT NULL;
CREATE INDEX run_by_report ON run (reported_at) WHERE status = 'running';

CREATE TABLE run_layer (
    run      TEXT    NOT NULL,
    position INTEGER NOT NULL,
    scope    INTEGER NOT NULL REFERENCES scope,
    revision INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
CREATE INDEX run_layer_by_scope ON run_layer (scope, revision);

CREATE TABLE event (
    id       INTEGER PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    scope    INTEGER REFERENCES scope,
    run      TEXT,
    sequence INTEGER,
    type     TEXT    NOT NULL,
    payload  TEXT    NOT NULL,
    at       INTEGER NOT NULL
);
CREATE INDEX event_by_run ON event (run, id) WHERE run IS NOT NULL;

CREATE TABLE record (
    tenant     TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, type, id)
) WITHOUT ROWID;
CREATE INDEX record_by_type ON record (tenant, type);

CREATE TABLE unique_key (
    name   TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    type   TEXT NOT NULL,
    id     TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX unique_key_by_record ON unique_key (tenant, type, id);

CREATE TABLE index_key (
    tenant TEXT NOT NULL,
    type   TEXT NOT NULL,
    name   TEXT NOT NULL,
    id     TEXT NOT NULL,
    PRIMARY KEY (tenant, type, name, id)
) WITHOUT ROWID;
CREATE INDEX index_key_by_record ON index_key (tenant, type, id);

CREATE TABLE collection_revision (
    tenant   TEXT    NOT NULL,
    type     TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (tenant, type)
) WITHOUT ROWID;

CREATE TABLE audit (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    author   TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    subjects TEXT    NOT NULL,
    key_id   TEXT    NOT NULL DEFAULT '',
    key_name TEXT    NOT NULL DEFAULT '',
    action   TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX audit_by_time ON audit (tenant, at);

CREATE TABLE audit_key (
    tenant TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    audit  INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, at, audit)
) WITHOUT ROWID;

CREATE TABLE key_usage (
    id           TEXT    PRIMARY KEY,
    last_used_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE idempotency_key (
    tenant      TEXT    NOT NULL,
    endpoint    TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    claimed_at  INTEGER NOT NULL,
    versions    TEXT,
    status      INTEGER,
    sealed      TEXT,
    revision    INTEGER,
    PRIMARY KEY (tenant, endpoint, key)
) WITHOUT ROWID;

CREATE TABLE delivery (
    id         TEXT    PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    webhook    TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    state      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    attempts   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX delivery_by_due ON delivery (due_at) WHERE state = 'pending';
CREATE INDEX delivery_by_webhook ON delivery (tenant, webhook, id);

CREATE TABLE attempt (
    delivery   TEXT    NOT NULL REFERENCES delivery,
    position   INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    status     INTEGER,
    problem    TEXT    NOT NULL,
    elapsed_ms INTEGER NOT NULL,
    PRIMARY KEY (delivery, position)
) WITHOUT ROWID;

CREATE TABLE delivery_cursor (
    name   TEXT PRIMARY KEY,
    cursor TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE session (
    tenant        TEXT    NOT NULL,
    agent         TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    mode          TEXT    NOT NULL,
    plugin        TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    entry_count   INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    last_entry_at INTEGER NOT NULL,
    run           TEXT,
    PRIMARY KEY (tenant, agent, id)
) WITHOUT ROWID;
CREATE INDEX session_by_agent ON session (tenant, agent, last_entry_at, id);
CREATE INDEX session_by_last_entry ON session (last_entry_at, tenant, agent, id);

CREATE TABLE session_entry (
    id       INTEGER PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    agent    TEXT    NOT NULL,
    session  TEXT    NOT NULL,
    sequence INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    role     TEXT    NOT NULL,
    content  BLOB    NOT NULL,
    message  TEXT,
    plugin   TEXT    NOT NULL,
    sender   TEXT,
    item     TEXT,
    run      TEXT,
    UNIQUE (tenant, agent, session, sequence)
);
CREATE INDEX session_entry_by_run ON session_entry (tenant, agent, run, at, session, sequence)
    WHERE run IS NOT NULL;

CREATE VIRTUAL TABLE session_entry_text USING fts5 (
    owner, terms, content = '', detail = column, tokenize = 'ascii'
);

CREATE TABLE search_term (
    tenant    TEXT NOT NULL,
    type      TEXT NOT NULL,
    index_key TEXT NOT NULL,
    term      TEXT NOT NULL,
    id        TEXT NOT NULL,
    PRIMARY KEY (tenant, type, index_key, term, id)
) WITHOUT ROWID;
CREATE INDEX search_term_by_record ON search_term (id, tenant, type);

CREATE TABLE recall (
    tenant TEXT NOT NULL,
    agent  TEXT NOT NULL,
    memory TEXT NOT NULL,
    id     TEXT NOT NULL,
    query  TEXT NOT NULL,
    score  REAL    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, memory, id)
) WITHOUT ROWID;

CREATE TABLE tally (
    tenant TEXT    NOT NULL,
    kind   TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    value  INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, name, key)
) WITHOUT ROWID;

CREATE TRIGGER tally_emptied AFTER UPDATE OF value ON tally WHEN NEW.value = 0 BEGIN
    DELETE FROM tally WHERE tenant = NEW.tenant AND kind = NEW.kind AND name = NEW.name
                        AND key = NEW.key;
END;

CREATE VIEW tally_change AS SELECT tenant, kind, name, key, value FROM tally;
CREATE TRIGGER tally_changed INSTEAD OF INSERT ON tally_change BEGIN
    INSERT INTO tally (tenant, kind, name, key, value)
    VALUES (NEW.tenant, NEW.kind, NEW.name, NEW.key, NEW.value)
    ON CONFLICT (tenant, kind, name, key) DO UPDATE SET value = value + excluded.value;
END;

CREATE VIEW agent_group AS
SELECT r.tenant, r.id,
       coalesce(r.body ->> 'templateId', '') || char(31) || coalesce(r.body ->> 'pins', '')
       || char(31) || iif(r.body ->> 'isShared', 'shared', 'private') AS name
  FROM record AS r WHERE r.type = 'agent' AND json_valid(r.body);

CREATE VIEW agent_file AS
SELECT s.tenant, s.name AS agent, e.scope, e.path,
       iif(e.content IS NULL, 'none',
           iif(b.id IS NULL, 'own', iif(b.digest = e.digest, 'pin', 'override')))
       || char(31) || lower(hex(b.digest)) || char(31) || coalesce(e.reviewed, '') AS key
  FROM scope AS s JOIN entry AS e ON e.scope = s.id LEFT JOIN content AS b ON b.id = e.base
 WHERE s.kind = 'agent' AND (e.content IS NOT NULL OR e.reviewed IS NOT NULL);

CREATE VIEW count_everything AS
SELECT tenant, kind, name, key, sum(value) AS value FROM (
    SELECT tenant, 'agents' AS kind, '' AS name, name AS key, 1 AS value FROM agent_group
    UNION ALL
    SELECT f.tenant, 'files', f.path, g.name || char(31) || f.key, 1
      FROM agent_group AS g JOIN agent_file AS f ON f.tenant = g.tenant AND f.agent = g.id
    UNION ALL
    SELECT tenant, type, printf('%06d', created_at / 86400000), '', 1
      FROM record WHERE type IN ('memory', 'promotion')
    UNION ALL
    SELECT tenant, 'runs', printf('%08d', started_at / 3600000), status, 1 FROM run
    UNION ALL
    SELECT r.tenant, 'prompts', printf('%06d', r.started_at / 86400000), p.key, p.value
      FROM run AS r, json_each(r.prompt) AS p WHERE r.prompt IS NOT NULL
) GROUP BY tenant, kind, name, key;

CREATE TRIGGER agent_counted AFTER INSERT ON record WHEN NEW.type = 'agent' BEGIN
    INSERT INTO tally_change SELECT NEW.tenant, 'agents', '', g.name, 1 FROM agent_group AS g
     WHERE g.tenant = NEW.tenant AND g.id = NEW.id;
    INSERT INTO tally_change SELECT NEW.tenant, 'files', f.path, g.name || char(31) || f.key, 1
      FROM agent_group AS g JOIN agent_file AS f ON f.tenant = NEW.tenant AND f.agent = NEW.id
     WHERE g.tenant = NEW.tenant AND g.id = NEW.id;
END;

CREATE TRIGGER agent_uncounted BEFORE DELETE ON record WHEN OLD.type = 'agent' BEGIN
    INSERT INTO tally_change SELECT OLD.tenant, 'files', f.path, g.name || char(31) || f.key, -1
      FROM agent_group AS g JOIN agent_file AS f ON f.tenant = OLD.tenant AND f.agent = OLD.id
     WHERE g.tenant = OLD.tenant AND g.id = OLD.id;
    INSERT INTO tally_change SELECT OLD.tenant, 'agents', '', g.name, -1 FROM agent_group AS g
     WHERE g.tenant = OLD.tenant AND g.id = OLD.id;
END;

CREATE TRIGGER agent_left_group BEFORE UPDATE OF body ON record
  WHEN OLD.type = 'agent'
   AND iif(json_valid(OLD.body) AND json_valid(NEW.body),
           json_extract(OLD.body, '$.templateId', '$.pins', '$.isShared')
           <> json_extract(NEW.body, '$.templateId', '$.pins', '$.isShared'), 1) BEGIN
    INSERT INTO tally_change SELECT OLD.tenant, 'files', f.path, g.name || char(31) || f.key, -1
      FROM agent_group AS g JOIN agent_file AS f ON f.tenant = OLD.tenant AND f.agent = OLD.id
     WHERE g.tenant = OLD.tenant AND g.id = OLD.id;
    INSERT INTO tally_change SELECT OLD.tenant, 'agents', '', g.name, -1 FROM agent_group AS g
     WHERE g.tenant = OLD.tenant AND g.id = OLD.id;
END;

CREATE TRIGGER agent_joined_group AFTER UPDATE OF body ON record
  WHEN NEW.type = 'agent'
   AND iif(json_valid(OLD.body) AND json_valid(NEW.body),
           json_extract(OLD.body, '$.templateId', '$.pins', '$.isShared')
           <> json_extract(NEW.body, '$.templateId', '$.pins', '$.isShared'), 1) BEGIN
    INSERT INTO tally_change SELECT NEW.tenant, 'agents', '', g.name, 1 FROM agent_group AS g
     WHERE g.tenant = NEW.tenant AND g.id = NEW.id;
    INSERT INTO tally_change SELECT NEW.tenant, 'files', f.path, g.name || char(31) || f.key, 1
      FROM agent_group AS g JOIN agent_file AS f ON f.tenant = NEW.tenant AND f.agent = NEW.id
     WHERE g.tenant = NEW.tenant AND g.id = NEW.id;
END;

CREATE TRIGGER file_counted AFTER INSERT ON entry
  WHEN NEW.content IS NOT NULL OR NEW.reviewed IS NOT NULL BEGIN
    INSERT INTO tally_change SELECT s.tenant, 'files', f.path, g.name || char(31) || f.key, 1
      FROM scope AS s JOIN agent_group AS g ON g.tenant = s.tenant AND g.id = s.name
      JOIN agent_file AS f ON f.scope = s.id AND f.path = NEW.path
     WHERE s.id = NEW.scope AND s.kind = 'agent';
END;

CREATE TRIGGER file_uncounted BEFORE DELETE ON entry
  WHEN OLD.content IS NOT NULL OR OLD.reviewed IS NOT NULL BEGIN
    INSERT INTO tally_change SELECT s.tenant, 'files', f.path, g.name || char(31) || f.key, -1
      FROM scope AS s JOIN agent_group AS g ON g.tenant = s.tenant AND g.id = s.name
      JOIN agent_file AS f ON f.scope = s.id AND f.path = OLD.path
     WHERE s.id = OLD.scope AND s.kind = 'agent';
END;

CREATE TRIGGER file_left_group BEFORE UPDATE OF content, digest, base, reviewed ON entry
  WHEN (OLD.content IS NULL) <> (NEW.content IS NULL) OR OLD.base IS NOT NEW.base
    OR NEW.base IS NOT NULL AND OLD.digest IS NOT NEW.digest
    OR OLD.reviewed IS NOT NEW.reviewed BEGIN
    INSERT INTO tally_change SELECT s.tenant, 'files', f.path, g.name || char(31) || f.key, -1
      FROM scope AS s JOIN agent_group AS g ON g.tenant = s.tenant AND g.id = s.name
      JOIN agent_file AS f ON f.scope = s.id AND f.path = OLD.path
     WHERE s.id = OLD.scope AND s.kind = 'agent';
END;

CREATE TRIGGER file_joined_group AFTER UPDATE OF content, digest, base, reviewed ON entry
  WHEN (OLD.content IS NULL) <> (NEW.content IS NULL) OR OLD.base IS NOT NEW.base
    OR NEW.base IS NOT NULL AND OLD.digest IS NOT NEW.digest
    OR OLD.reviewed IS NOT NEW.reviewed BEGIN
    INSERT INTO tally_change SELECT s.tenant, 'files', f.path, g.name || char(31) || f.key, 1
      FROM scope AS s JOIN agent_group AS g ON g.tenant = s.tenant AND g.id = s.name
      JOIN agent_file AS f ON f.scope = s.id AND f.path = NEW.path
     WHERE s.id = NEW.scope AND s.kind = 'agent';
END;

CREATE TRIGGER record_day_counted AFTER INSERT ON record
  WHEN NEW.type IN ('memory', 'promotion') BEGIN
    INSERT INTO tally_change
    VALUES (NEW.tenant, NEW.type, printf('%06d', NEW.created_at / 86400000), '', 1);
END;

CREATE TRIGGER record_day_uncounted AFTER DELETE ON record
  WHEN OLD.type IN ('memory', 'promotion') BEGIN
    INSERT INTO tally_change
    VALUES (OLD.tenant, OLD.type, printf('%06d', OLD.created_at / 86400000), '', -1);
END;

CREATE TRIGGER run_counted AFTER INSERT ON run BEGIN
    INSERT INTO tally_change
    VALUES (NEW.tenant, 'runs', printf('%08d', NEW.started_at / 3600000), NEW.status, 1);
END;

CREATE TRIGGER run_uncounted AFTER DELETE ON run BEGIN
    INSERT INTO tally_change
    VALUES (OLD.tenant, 'runs', printf('%08d', OLD.started_at / 3600000), OLD.status, -1);
END;

CREATE TRIGGER run_status_counted AFTER UPDATE OF status ON run
  WHEN OLD.status <> NEW.status BEGIN
    INSERT INTO tally_change
    VALUES (OLD.tenant, 'runs', printf('%08d', OLD.started_at / 3600000), OLD.status, -1);
    INSERT INTO tally_change
    VALUES (NEW.tenant, 'runs', printf('%08d', NEW.started_at / 3600000), NEW.status, 1);
END;

CREATE TRIGGER prompt_counted AFTER INSERT ON run
  WHEN NEW.prompt IS NOT NULL BEGIN
    INSERT INTO tally_change
    SELECT NEW.tenant, 'prompts', printf('%06d', NEW.started_at / 86400000), p.key, p.value
      FROM json_each(coalesce(NEW.prompt, '{}')) AS p;
END;

CREATE TRIGGER prompt_uncounted AFTER DELETE ON run
  WHEN OLD.prompt IS NOT NULL BEGIN
    INSERT INTO tally_change
    SELECT OLD.tenant, 'prompts', printf('%06d', OLD.started_at / 86400000), p.key, -p.value
      FROM json_each(coalesce(OLD.prompt, '{}')) AS p;
END;

CREATE TRIGGER prompt_recounted AFTER UPDATE OF prompt ON run
  WHEN OLD.prompt IS NOT NEW.prompt BEGIN
    INSERT INTO tally_change
    SELECT OLD.tenant, 'prompts', printf('%06d', OLD.started_at / 86400000), p.key, -p.value
      FROM json_each(coalesce(OLD.prompt, '{}')) AS p;
    INSERT INTO tally_change
    SELECT NEW.tenant, 'prompts', printf('%06d', NEW.started_at / 86400000), p.key, p.value
      FROM json_each(coalesce(NEW.prompt, '{}')) AS p;
END;

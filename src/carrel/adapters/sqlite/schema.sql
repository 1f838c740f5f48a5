-- Authoritative schema. Migrations must produce exactly this.

-- Counters. 'records' increases with any change of an audited record. 'content' and 'event' hold
-- the greatest id when rows were last deleted: the next id is above this and above all rows.
CREATE TABLE counter (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- Scopes. `revision` increases with every commit; `files` and `size` count live files and bytes.
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

-- File contents, append-only. `body` is NULL if the content is in the large blob store.
CREATE TABLE content (
    id     INTEGER PRIMARY KEY,
    digest BLOB    NOT NULL,
    size   INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    body   BLOB
);

-- Current head of each path. `content` NULL is a tombstone, which continues the version numbers.
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
    PRIMARY KEY (scope, path)
) WITHOUT ROWID;

-- History of each path with author, reason and run, until it is pruned.
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
    by       TEXT    NOT NULL,
    why      TEXT    NOT NULL,
    run      TEXT,
    PRIMARY KEY (scope, path, version)
) WITHOUT ROWID;

-- Runs and the revisions of their layers. A run whose snapshot was released has no layers.
CREATE TABLE run (
    tenant    TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    scope     INTEGER NOT NULL REFERENCES scope,
    workflow  TEXT    NOT NULL,
    mode      TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    by        TEXT    NOT NULL,
    started   INTEGER NOT NULL,
    ended     INTEGER,
    parent    TEXT,
    replay_of TEXT,
    kept      INTEGER NOT NULL,
    variables TEXT    NOT NULL,
    events    INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;

CREATE INDEX run_by_scope ON run (scope, tenant, id);

CREATE TABLE run_layer (
    run      TEXT    NOT NULL,
    place    INTEGER NOT NULL,
    scope    INTEGER NOT NULL REFERENCES scope,
    revision INTEGER NOT NULL,
    PRIMARY KEY (run, place)
) WITHOUT ROWID;
CREATE INDEX run_layer_by_scope ON run_layer (scope, revision);

-- Event log, written in the transaction of the change. `sequence` is the position in the run's log.
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

-- Records as JSON documents, with their unique keys and index keys.
CREATE TABLE record (
    tenant   TEXT    NOT NULL,
    noun     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    body     TEXT    NOT NULL,
    created  INTEGER NOT NULL,
    changed  INTEGER NOT NULL,
    PRIMARY KEY (tenant, noun, id)
) WITHOUT ROWID;

CREATE TABLE handle (
    name   TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    noun   TEXT NOT NULL,
    id     TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX handle_of ON handle (tenant, noun, id);

CREATE TABLE link (
    tenant TEXT NOT NULL,
    noun   TEXT NOT NULL,
    name   TEXT NOT NULL,
    id     TEXT NOT NULL,
    PRIMARY KEY (tenant, noun, name, id)
) WITHOUT ROWID;
CREATE INDEX link_of ON link (tenant, noun, id);

CREATE TABLE shelf (
    tenant   TEXT    NOT NULL,
    noun     TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (tenant, noun)
) WITHOUT ROWID;

-- Audit log of record changes. Append-only.
CREATE TABLE audit (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    by       TEXT    NOT NULL,
    why      TEXT    NOT NULL,
    subjects TEXT    NOT NULL
);
CREATE INDEX audit_by_tenant ON audit (tenant, id);

CREATE TABLE usage (
    id TEXT    PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

-- Idempotency keys with their responses. `versions` is set by the commit itself.
CREATE TABLE receipt (
    tenant      TEXT    NOT NULL,
    endpoint    TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL,
    claimed     INTEGER NOT NULL,
    versions    TEXT,
    status      INTEGER,
    sealed      TEXT,
    PRIMARY KEY (tenant, endpoint, key)
) WITHOUT ROWID;

-- Webhook deliveries, their attempts, and the cursor up to which events were enqueued.
CREATE TABLE delivery (
    id      TEXT    PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    webhook TEXT    NOT NULL,
    type    TEXT    NOT NULL,
    body    BLOB    NOT NULL,
    state   TEXT    NOT NULL,
    created INTEGER NOT NULL,
    due     INTEGER NOT NULL,
    tries   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX delivery_by_due ON delivery (due) WHERE state = 'pending';
CREATE INDEX delivery_by_webhook ON delivery (tenant, webhook, id);

CREATE TABLE attempt (
    delivery TEXT    NOT NULL REFERENCES delivery,
    place    INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    status   INTEGER,
    problem  TEXT    NOT NULL,
    took     INTEGER NOT NULL,
    PRIMARY KEY (delivery, place)
) WITHOUT ROWID;

CREATE TABLE mark (
    name   TEXT PRIMARY KEY,
    cursor TEXT NOT NULL
) WITHOUT ROWID;

-- Sessions and their entries, append-only. `last` is the time of the last entry, `entries` their
-- number; `number` counts from 1 in each session.
CREATE TABLE session (
    tenant  TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    agent   TEXT    NOT NULL,
    mode    TEXT    NOT NULL,
    plugin  TEXT    NOT NULL,
    started INTEGER NOT NULL,
    ended   INTEGER,
    entries INTEGER NOT NULL,
    last    INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE INDEX session_by_agent ON session (tenant, agent, last, id);
CREATE INDEX session_by_last ON session (last, tenant, id);

CREATE TABLE utterance (
    id      INTEGER PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    role    TEXT    NOT NULL,
    content BLOB    NOT NULL,
    message TEXT,
    plugin  TEXT    NOT NULL,
    sender  TEXT,
    UNIQUE (tenant, session, number)
);

-- Full-text index of session entries by row id, rebuilt by `carrel reindex`. `owner` identifies
-- tenant and agent, so that a search never scans the terms of others.
CREATE VIRTUAL TABLE utterance_text USING fts5 (
    owner, words, content = '', detail = column, tokenize = 'ascii'
);

-- Search terms of records, for each of their index keys. Derived from the records.
CREATE TABLE word (
    tenant TEXT NOT NULL,
    noun   TEXT NOT NULL,
    link   TEXT NOT NULL,
    word   TEXT NOT NULL,
    id     TEXT NOT NULL,
    PRIMARY KEY (tenant, noun, link, word, id)
) WITHOUT ROWID;
CREATE INDEX word_of ON word (tenant, noun, id);

-- Recall log: which memory matched which query of an agent, with its score.
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

-- The truth about what is stored. Migrations must arrive exactly here.

-- Numbers that are given out once. 'records' rises with any change of any record. 'content' and
-- 'event' say how far ids had come when rows were last removed: the next one is above both this and
-- all that are there.
CREATE TABLE counter (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per scope. `revision` rises with every commit; `files` and `size` count what is live.
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

-- Bytes, only ever appended. `body` is NULL where they are kept outside, by digest.
CREATE TABLE content (
    id     INTEGER PRIMARY KEY,
    digest BLOB    NOT NULL,
    size   INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    body   BLOB
);

-- What a scope says of a path now. `content` NULL is a tombstone: it keeps the number going.
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

-- Everything that was said, by whom, why and in which run, until it is pruned.
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

-- Runs, and the revisions at which they hold their layers. A run that is let go has no layers.
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

-- What happened, in the transaction that made it happen. `sequence` is its place in its run's log.
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

-- The facts beside the files, as JSON; the names only one may have, and those to list them by.
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

-- Who did what to which records. Only ever appended to.
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

-- Answers to requests that must not be done twice. `versions` is set by the commit itself.
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

-- What is to be posted to webhooks, what became of it, and how far events have been turned into it.
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

-- What was said in agents' sessions, only ever appended to. `last` is when anything was, and `entries`
-- how much; `number` counts from 1 in each session.
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

-- Its words, by the id of an utterance: made from what is above, and made again by `carrel reindex`.
-- `owner` stands for tenant and agent, so that nobody's search goes through the words of others.
CREATE VIRTUAL TABLE utterance_text USING fts5 (
    owner, words, content = '', detail = column, tokenize = 'ascii'
);

-- The words that records are found by, under each of their links. Made from the records, and can be
-- made from them again.
CREATE TABLE word (
    tenant TEXT NOT NULL,
    noun   TEXT NOT NULL,
    link   TEXT NOT NULL,
    word   TEXT NOT NULL,
    id     TEXT NOT NULL,
    PRIMARY KEY (tenant, noun, link, word, id)
) WITHOUT ROWID;
CREATE INDEX word_of ON word (tenant, noun, id);

-- Which memory came up for which question of an agent, and how far up.
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

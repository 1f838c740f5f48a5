-- What is said in agents' sessions.

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

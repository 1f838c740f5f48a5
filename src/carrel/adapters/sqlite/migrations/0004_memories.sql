-- Memories: they are found by their words, and what is recalled is counted.

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

-- A write touches fewer pages: runs are kept by tenant, so that this needs no index of its own; a
-- tenant's events are found by going through those that are new; and ids are counted from what is
-- there.

DROP INDEX event_by_tenant;

ALTER TABLE run RENAME TO old_run;
DROP INDEX run_by_tenant;
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
INSERT INTO run
SELECT tenant, id, scope, workflow, mode, status, by, started, ended, parent, replay_of, kept,
       variables, events
  FROM old_run ORDER BY tenant, id;

ALTER TABLE run_layer RENAME TO old_run_layer;
DROP INDEX run_layer_by_scope;
CREATE TABLE run_layer (
    run      TEXT    NOT NULL,
    place    INTEGER NOT NULL,
    scope    INTEGER NOT NULL REFERENCES scope,
    revision INTEGER NOT NULL,
    PRIMARY KEY (run, place)
) WITHOUT ROWID;
CREATE INDEX run_layer_by_scope ON run_layer (scope, revision);
INSERT INTO run_layer SELECT run, place, scope, revision FROM old_run_layer ORDER BY run, place;
DROP TABLE old_run_layer;
DROP TABLE old_run;

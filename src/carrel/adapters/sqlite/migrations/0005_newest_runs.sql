-- The newest run of each of many agents is found without going through all runs.
CREATE INDEX run_by_scope ON run (scope, tenant, id);

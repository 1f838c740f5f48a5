-- With `tenant` first, a planner without statistics prefers this index to the primary key.
DROP INDEX search_term_by_record;
CREATE INDEX search_term_by_record ON search_term (id, tenant, type);

-- Tallies: counts that the fleet's overview and the inbox are answered from, kept by triggers in the
-- transaction of each change. `tally` is in schema.sql.

-- Template, pin set and visibility of each agent.
CREATE VIEW agent_group AS
SELECT r.tenant, r.id,
       concat_ws(E'\x1f', coalesce(r.body::jsonb ->> 'templateId', ''),
                 coalesce(r.body::jsonb ->> 'pins', ''),
                 CASE WHEN r.body::jsonb -> 'isShared' = 'true'::jsonb
                      THEN 'shared' ELSE 'private' END) AS name
  FROM record AS r WHERE r.type = 'agent';

-- Files in the scopes of agents, and paths where a person decided about an offered file; `key` is the
-- state of the entry, the digest of its base and the reviewed offer.
CREATE VIEW agent_file AS
SELECT s.tenant, s.name AS agent, e.scope, e.path,
       CASE WHEN e.content IS NULL THEN E'none\x1f'
            ELSE coalesce(CASE WHEN b.digest = e.digest THEN 'pin' ELSE 'override' END
                          || E'\x1f' || encode(b.digest, 'hex'), E'own\x1f') END
       || E'\x1f' || coalesce(e.reviewed, '') AS key
  FROM scope AS s JOIN entry AS e ON e.scope = s.id LEFT JOIN content AS b ON b.id = e.base
 WHERE s.kind = 'agent' AND (e.content IS NOT NULL OR e.reviewed IS NOT NULL);

-- What the tallies must be.
CREATE VIEW count_everything AS
SELECT n.tenant, n.kind, n.name, n.key, sum(n.value)::bigint AS value FROM (
    SELECT g.tenant, 'agents', '', g.name, 1::bigint FROM agent_group AS g
    UNION ALL
    SELECT f.tenant, 'files', f.path, g.name || E'\x1f' || f.key, 1
      FROM agent_group AS g JOIN agent_file AS f ON f.tenant = g.tenant AND f.agent = g.id
    UNION ALL
    SELECT r.tenant, r.type, lpad((r.created_at / 86400000)::text, 6, '0'), '', 1
      FROM record AS r WHERE r.type IN ('memory', 'promotion')
    UNION ALL
    SELECT r.tenant, 'runs', lpad((r.started_at / 3600000)::text, 8, '0'), r.status, 1
      FROM run AS r
    UNION ALL
    SELECT r.tenant, 'prompts', lpad((r.started_at / 86400000)::text, 6, '0'), p.key,
           p.value::bigint
      FROM run AS r, jsonb_each_text(r.prompt::jsonb) AS p (key, value) WHERE r.prompt IS NOT NULL
) AS n (tenant, kind, name, key, value) GROUP BY n.tenant, n.kind, n.name, n.key;

-- Add the changes of this transaction to the tallies. It runs when the transaction ends, after all
-- other locks were taken, and one lock for each tenant orders those that end at the same time: so
-- transactions wait for each other only while they end, and never in a circle.
CREATE FUNCTION add_tally_changes() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    c record;
    new_value bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(t.lock)
       FROM (SELECT DISTINCT hashtextextended('tally ' || tenant, 0) AS lock FROM tally_change
              WHERE tx = pg_current_xact_id() ORDER BY 1) AS t;
    FOR c IN
        WITH changed AS (DELETE FROM tally_change WHERE tx = pg_current_xact_id() RETURNING *)
        SELECT n.tenant, n.kind, n.name, n.key, sum(n.value)::bigint AS value FROM changed AS n
         GROUP BY 1, 2, 3, 4 HAVING sum(n.value) <> 0
    LOOP
        INSERT INTO tally AS t (tenant, kind, name, key, value)
        VALUES (c.tenant, c.kind, c.name, c.key, c.value)
        ON CONFLICT (tenant, kind, name, key) DO UPDATE SET value = t.value + excluded.value
        RETURNING t.value INTO new_value;
        IF new_value = 0 THEN
            DELETE FROM tally AS t WHERE t.tenant = c.tenant AND t.kind = c.kind
                                     AND t.name = c.name AND t.key = c.key;
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER tally_changed AFTER INSERT ON tally_change
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION add_tally_changes();

-- Count an agent and its files in its group, or take them out.
CREATE FUNCTION tally_agent(agent_tenant text, agent_id text, sign integer) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO tally_change (tenant, kind, name, key, value)
    SELECT agent_tenant, 'agents', '', g.name, sign FROM agent_group AS g
     WHERE g.tenant = agent_tenant AND g.id = agent_id
    UNION ALL
    SELECT agent_tenant, 'files', f.path, g.name || E'\x1f' || f.key, sign
      FROM agent_group AS g JOIN agent_file AS f ON f.tenant = g.tenant AND f.agent = g.id
     WHERE g.tenant = agent_tenant AND g.id = agent_id
$$;

CREATE FUNCTION tally_old_agent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tally_agent(OLD.tenant, OLD.id, -1);
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION tally_new_agent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tally_agent(NEW.tenant, NEW.id, 1);
    RETURN NULL;
END $$;

CREATE TRIGGER agent_counted AFTER INSERT ON record
    FOR EACH ROW WHEN (NEW.type = 'agent') EXECUTE FUNCTION tally_new_agent();
CREATE TRIGGER agent_uncounted BEFORE DELETE ON record
    FOR EACH ROW WHEN (OLD.type = 'agent') EXECUTE FUNCTION tally_old_agent();
CREATE TRIGGER agent_left_group BEFORE UPDATE ON record
    FOR EACH ROW WHEN (OLD.type = 'agent' AND OLD.body <> NEW.body)
    EXECUTE FUNCTION tally_old_agent();
CREATE TRIGGER agent_joined_group AFTER UPDATE ON record
    FOR EACH ROW WHEN (NEW.type = 'agent' AND OLD.body <> NEW.body)
    EXECUTE FUNCTION tally_new_agent();

-- Count a file of an agent in the agent's group, or take it out.
CREATE FUNCTION tally_file(file_scope bigint, file_path text, sign integer) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO tally_change (tenant, kind, name, key, value)
    SELECT s.tenant, 'files', f.path, g.name || E'\x1f' || f.key, sign
      FROM scope AS s JOIN agent_group AS g ON g.tenant = s.tenant AND g.id = s.name
      JOIN agent_file AS f ON f.scope = s.id AND f.path = file_path
     WHERE s.id = file_scope AND s.kind = 'agent'
$$;

CREATE FUNCTION tally_old_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tally_file(OLD.scope, OLD.path, -1);
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION tally_new_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tally_file(NEW.scope, NEW.path, 1);
    RETURN NULL;
END $$;

CREATE TRIGGER file_counted AFTER INSERT ON entry
    FOR EACH ROW WHEN (NEW.content IS NOT NULL OR NEW.reviewed IS NOT NULL)
    EXECUTE FUNCTION tally_new_file();
CREATE TRIGGER file_uncounted BEFORE DELETE ON entry
    FOR EACH ROW WHEN (OLD.content IS NOT NULL OR OLD.reviewed IS NOT NULL)
    EXECUTE FUNCTION tally_old_file();
CREATE TRIGGER file_left_group BEFORE UPDATE ON entry FOR EACH ROW
    WHEN ((OLD.content IS NULL) <> (NEW.content IS NULL) OR OLD.base IS DISTINCT FROM NEW.base
          OR NEW.base IS NOT NULL AND OLD.digest IS DISTINCT FROM NEW.digest
          OR OLD.reviewed IS DISTINCT FROM NEW.reviewed)
    EXECUTE FUNCTION tally_old_file();
CREATE TRIGGER file_joined_group AFTER UPDATE ON entry FOR EACH ROW
    WHEN ((OLD.content IS NULL) <> (NEW.content IS NULL) OR OLD.base IS DISTINCT FROM NEW.base
          OR NEW.base IS NOT NULL AND OLD.digest IS DISTINCT FROM NEW.digest
          OR OLD.reviewed IS DISTINCT FROM NEW.reviewed)
    EXECUTE FUNCTION tally_new_file();

-- Memories and promotions by the day of their creation.
CREATE FUNCTION tally_record_day() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO tally_change (tenant, kind, name, key, value)
        VALUES (NEW.tenant, NEW.type, lpad((NEW.created_at / 86400000)::text, 6, '0'), '', 1);
    ELSE
        INSERT INTO tally_change (tenant, kind, name, key, value)
        VALUES (OLD.tenant, OLD.type, lpad((OLD.created_at / 86400000)::text, 6, '0'), '', -1);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER record_day_counted AFTER INSERT ON record FOR EACH ROW
    WHEN (NEW.type IN ('memory', 'promotion')) EXECUTE FUNCTION tally_record_day();
CREATE TRIGGER record_day_uncounted AFTER DELETE ON record FOR EACH ROW
    WHEN (OLD.type IN ('memory', 'promotion')) EXECUTE FUNCTION tally_record_day();

-- Runs by hour and status, and the sizes of their prompts by day.
CREATE FUNCTION tally_run(counted run, sign integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO tally_change (tenant, kind, name, key, value)
    SELECT counted.tenant, 'runs', lpad((counted.started_at / 3600000)::text, 8, '0'),
           counted.status, sign
    UNION ALL
    SELECT counted.tenant, 'prompts', lpad((counted.started_at / 86400000)::text, 6, '0'), p.key,
           p.value::bigint * sign
      FROM jsonb_each_text(coalesce(counted.prompt, '{}')::jsonb) AS p (key, value)
$$;

CREATE FUNCTION tally_changed_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM tally_run(OLD, -1);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM tally_run(NEW, 1);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER run_counted AFTER INSERT OR DELETE ON run
    FOR EACH ROW EXECUTE FUNCTION tally_changed_run();
CREATE TRIGGER run_recounted AFTER UPDATE ON run FOR EACH ROW
    WHEN (OLD.status <> NEW.status OR OLD.prompt IS DISTINCT FROM NEW.prompt)
    EXECUTE FUNCTION tally_changed_run();

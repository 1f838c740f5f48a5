-- Record changes.

-- Whether a commit deletes the owner of a unique key or writes it without the key.
CREATE FUNCTION releases_unique_key(changes jsonb, used unique_key) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT EXISTS (
        SELECT FROM jsonb_array_elements(changes) AS e (change)
         WHERE e.change ->> 'kind' = 'change' AND e.change ->> 'tenant' = used.tenant
           AND e.change ->> 'type' = used.type AND e.change ->> 'id' = used.id
           AND NOT coalesce(e.change -> 'unique_keys' ? used.name, false)
    );
$$;

-- Apply the record changes of one commit in order and write its audit entries, which also name the
-- additional subjects and the author's key. Items have a `kind`: 'change', 'read' (a record with the
-- expected revision), 'subject', 'key', 'action', 'audit key' or 'event'; events are ignored here.
-- Returns NULL if applied;
-- else [index of the refused change, unique key in use], and nothing was applied. With `check_only`
-- the changes are checked but not applied. Callers hold the lock of all records, so that two cannot
-- take the same unique key; if all changed types are unaudited, the locks of their collections are
-- enough, since their unique keys contain the collection.
CREATE FUNCTION apply_record_changes(
    changes jsonb, commit_author text, commit_reason text, commit_at bigint, check_only boolean
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    c record;
    current_revision bigint;
    used unique_key;
    refusal text;
    changed_collections jsonb[] = '{}';
    any_audited boolean = false;
    changed_read bigint;
BEGIN
    SELECT e.n INTO changed_read
      FROM jsonb_array_elements(changes) WITH ORDINALITY AS e (change, n)
      LEFT JOIN record AS r ON r.tenant = e.change ->> 'tenant' AND r.type = e.change ->> 'type'
                           AND r.id = e.change ->> 'id'
     WHERE e.change ->> 'kind' = 'read'
       AND coalesce(r.revision, 0) <> (e.change ->> 'expected')::bigint
     ORDER BY e.n LIMIT 1;
    IF changed_read IS NOT NULL THEN
        RETURN jsonb_build_array(changed_read, NULL);
    END IF;
    FOR c IN
        SELECT x.*, e.n
          FROM jsonb_array_elements(changes) WITH ORDINALITY AS e (change, n),
               jsonb_to_record(e.change) AS x (kind text, tenant text, type text, id text,
                                               body text, expected bigint, unique_keys text[],
                                               index_keys text[], terms text[], audited boolean)
         WHERE x.kind = 'change'
         ORDER BY e.n
    LOOP
        SELECT r.revision INTO current_revision FROM record AS r
         WHERE r.tenant = c.tenant AND r.type = c.type AND r.id = c.id;
        IF c.expected <> coalesce(current_revision, 0) THEN
            RAISE SQLSTATE 'CA001' USING DETAIL = jsonb_build_array(c.n, NULL);
        END IF;
        FOR used IN
            SELECT k.* FROM unnest(c.unique_keys) WITH ORDINALITY AS w (name, n)
              JOIN unique_key AS k ON k.name = w.name
             WHERE (k.tenant, k.type, k.id) <> (c.tenant, c.type, c.id) ORDER BY w.n
        LOOP
            IF NOT releases_unique_key(changes, used) THEN
                RAISE SQLSTATE 'CA001' USING DETAIL = jsonb_build_array(c.n, used.name);
            END IF;
        END LOOP;

        DELETE FROM unique_key AS k WHERE k.tenant = c.tenant AND k.type = c.type AND k.id = c.id;
        DELETE FROM index_key AS i WHERE i.tenant = c.tenant AND i.type = c.type AND i.id = c.id;
        DELETE FROM search_term AS t WHERE t.tenant = c.tenant AND t.type = c.type AND t.id = c.id;
        IF c.body IS NULL THEN
            DELETE FROM record AS r WHERE r.tenant = c.tenant AND r.type = c.type AND r.id = c.id;
            CONTINUE WHEN NOT FOUND;
        ELSE
            INSERT INTO record (tenant, type, id, revision, body, created_at, updated_at)
            VALUES (c.tenant, c.type, c.id, 1, c.body, commit_at, commit_at)
            ON CONFLICT (tenant, type, id) DO UPDATE
               SET revision = record.revision + 1, body = excluded.body,
                   updated_at = excluded.updated_at;
            INSERT INTO unique_key (name, tenant, type, id)
            SELECT DISTINCT w.name, c.tenant, c.type, c.id FROM unnest(c.unique_keys) AS w (name)
            ON CONFLICT (name) DO UPDATE
               SET tenant = excluded.tenant, type = excluded.type, id = excluded.id;
            INSERT INTO index_key (tenant, type, name, id)
            SELECT DISTINCT c.tenant, c.type, w.name, c.id FROM unnest(c.index_keys) AS w (name);
            INSERT INTO search_term (tenant, type, index_key, term, id)
            SELECT DISTINCT c.tenant, c.type, i.name, t.term, c.id
              FROM unnest(c.index_keys) AS i (name), unnest(c.terms) AS t (term);
        END IF;
        changed_collections = changed_collections || jsonb_build_array(c.tenant, c.type);
        any_audited = any_audited OR c.audited;
    END LOOP;

    INSERT INTO collection_revision AS r (tenant, type, revision)
    SELECT DISTINCT w.pair ->> 0, w.pair ->> 1, 1 FROM unnest(changed_collections) AS w (pair)
    ON CONFLICT (tenant, type) DO UPDATE SET revision = r.revision + 1;
    UPDATE counter SET value = value + 1 WHERE name = 'records' AND any_audited;
    WITH added AS (
    INSERT INTO audit (tenant, at, author, reason, subjects, key_id, key_name, action)
    SELECT e.change ->> 'tenant', commit_at, commit_author, commit_reason,
           jsonb_agg(concat(e.change ->> 'type', '/', e.change ->> 'id') ORDER BY e.n)::text,
           coalesce(jsonb_path_query_first(changes, '$[*] ? (@.kind == "key").id') #>> '{}', ''),
           coalesce(jsonb_path_query_first(changes, '$[*] ? (@.kind == "key").name') #>> '{}', ''),
           coalesce(jsonb_path_query_first(changes, '$[*] ? (@.kind == "action").name') #>> '{}', '')
      FROM jsonb_array_elements(changes) WITH ORDINALITY AS e (change, n)
     WHERE (e.change ->> 'audited')::boolean
     GROUP BY 1 ORDER BY min(e.n)
    RETURNING id, tenant, at)
    INSERT INTO audit_key (tenant, name, at, audit)
    SELECT a.tenant, e.change ->> 'name', a.at, a.id
      FROM added AS a JOIN jsonb_array_elements(changes) AS e (change)
        ON e.change ->> 'kind' = 'audit key' AND e.change ->> 'tenant' = a.tenant;
    IF check_only THEN
        RAISE SQLSTATE 'CA002';
    END IF;
    RETURN NULL;
EXCEPTION
    WHEN SQLSTATE 'CA001' THEN
        GET STACKED DIAGNOSTICS refusal = PG_EXCEPTION_DETAIL;
        RETURN refusal::jsonb;
    WHEN SQLSTATE 'CA002' THEN
        RETURN NULL;
END $$;

-- Revision of each record collection, in order; 0 if it has never changed.
CREATE FUNCTION collection_revisions(tenants text[], types text[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    revisions bigint[];
BEGIN
    SELECT array_agg(coalesce(r.revision, 0) ORDER BY w.n) INTO revisions
      FROM unnest(tenants, types) WITH ORDINALITY AS w (tenant, type, n)
      LEFT JOIN collection_revision AS r ON r.tenant = w.tenant AND r.type = w.type;
    RETURN revisions;
END $$;

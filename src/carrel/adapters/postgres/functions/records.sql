-- Record changes.

-- Apply the record changes of one commit in order and write its audit entries, which also name the
-- additional subjects. Returns NULL if applied; else [index of the refused change, unique key in
-- use], and nothing was applied. With `undo` the changes are only checked. Callers hold the lock of
-- all records, so that two cannot take the same unique key; if all changed types are unaudited, the
-- locks of their collections are enough, since their unique keys contain the collection.
CREATE FUNCTION apply_changes(
    changes jsonb, said_by text, said_why text, said_at bigint, undo boolean
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    c record;
    found_revision bigint;
    taken text;
    refused text;
    changed jsonb[] = '{}';
    loud boolean = false;
BEGIN
    FOR c IN
        SELECT x.*, e.n
          FROM jsonb_array_elements(changes) WITH ORDINALITY AS e (change, n),
               jsonb_to_record(e.change) AS x (tenant text, noun text, id text, body text,
                                               expected bigint, handles text[], links text[],
                                               words text[], quiet boolean, note boolean)
         WHERE x.note IS NULL
         ORDER BY e.n
    LOOP
        SELECT r.revision INTO found_revision FROM record AS r
         WHERE r.tenant = c.tenant AND r.noun = c.noun AND r.id = c.id;
        IF c.expected <> coalesce(found_revision, 0) THEN
            RAISE SQLSTATE 'CA001' USING DETAIL = jsonb_build_array(c.n, NULL);
        END IF;
        SELECT w.name INTO taken FROM unnest(c.handles) WITH ORDINALITY AS w (name, n)
          JOIN handle AS h ON h.name = w.name
         WHERE (h.tenant, h.noun, h.id) <> (c.tenant, c.noun, c.id) ORDER BY w.n LIMIT 1;
        IF taken IS NOT NULL THEN
            RAISE SQLSTATE 'CA001' USING DETAIL = jsonb_build_array(c.n, taken);
        END IF;

        DELETE FROM handle AS h WHERE h.tenant = c.tenant AND h.noun = c.noun AND h.id = c.id;
        DELETE FROM link AS l WHERE l.tenant = c.tenant AND l.noun = c.noun AND l.id = c.id;
        DELETE FROM word AS w WHERE w.tenant = c.tenant AND w.noun = c.noun AND w.id = c.id;
        IF c.body IS NULL THEN
            DELETE FROM record AS r WHERE r.tenant = c.tenant AND r.noun = c.noun AND r.id = c.id;
            CONTINUE WHEN NOT FOUND;
        ELSE
            INSERT INTO record (tenant, noun, id, revision, body, created, changed)
            VALUES (c.tenant, c.noun, c.id, 1, c.body, said_at, said_at)
            ON CONFLICT (tenant, noun, id) DO UPDATE
               SET revision = record.revision + 1, body = excluded.body, changed = excluded.changed;
            INSERT INTO handle (name, tenant, noun, id)
            SELECT DISTINCT w.name, c.tenant, c.noun, c.id FROM unnest(c.handles) AS w (name);
            INSERT INTO link (tenant, noun, name, id)
            SELECT DISTINCT c.tenant, c.noun, w.name, c.id FROM unnest(c.links) AS w (name);
            INSERT INTO word (tenant, noun, link, word, id)
            SELECT DISTINCT c.tenant, c.noun, l.name, w.word, c.id
              FROM unnest(c.links) AS l (name), unnest(c.words) AS w (word);
        END IF;
        changed = changed || jsonb_build_array(c.tenant, c.noun);
        loud = loud OR NOT c.quiet;
    END LOOP;

    INSERT INTO shelf (tenant, noun, revision)
    SELECT DISTINCT k.shelf ->> 0, k.shelf ->> 1, 1 FROM unnest(changed) AS k (shelf)
    ON CONFLICT (tenant, noun) DO UPDATE SET revision = shelf.revision + 1;
    UPDATE counter SET value = value + 1 WHERE name = 'records' AND loud;
    INSERT INTO audit (tenant, at, by, why, subjects)
    SELECT e.change ->> 'tenant', said_at, said_by, said_why,
           jsonb_agg(concat(e.change ->> 'noun', '/', e.change ->> 'id') ORDER BY e.n)::text
      FROM jsonb_array_elements(changes) WITH ORDINALITY AS e (change, n)
     WHERE NOT coalesce((e.change ->> 'quiet')::boolean, false)
     GROUP BY 1 ORDER BY min(e.n);
    IF undo THEN
        RAISE SQLSTATE 'CA002';
    END IF;
    RETURN NULL;
EXCEPTION
    WHEN SQLSTATE 'CA001' THEN
        GET STACKED DIAGNOSTICS refused = PG_EXCEPTION_DETAIL;
        RETURN refused::jsonb;
    WHEN SQLSTATE 'CA002' THEN
        RETURN NULL;
END $$;

-- Revision of each record collection, in order; 0 if it has never changed.
CREATE FUNCTION shelf_revisions(tenants text[], nouns text[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    revisions bigint[];
BEGIN
    SELECT array_agg(coalesce(f.revision, 0) ORDER BY a.n) INTO revisions
      FROM unnest(tenants, nouns) WITH ORDINALITY AS a (tenant, noun, n)
      LEFT JOIN shelf AS f ON f.tenant = a.tenant AND f.noun = a.noun;
    RETURN revisions;
END $$;

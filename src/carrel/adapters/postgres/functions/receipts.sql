-- Requests that must not be done twice.

-- Take a key, or give what is known of whoever has it: one row, `taken` or not.
-- A claim need not be on disk when it is answered: a commit that marks it comes later in the log,
-- so if that survives, the claim does.
CREATE FUNCTION claim_receipt(
    of_tenant text, of_endpoint text, of_key text, of_fingerprint text, now_at bigint, stale bigint,
    OUT taken boolean, OUT fingerprint text, OUT versions text, OUT status integer, OUT sealed text
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    LOOP
        INSERT INTO receipt AS r (tenant, endpoint, key, fingerprint, claimed)
        VALUES (of_tenant, of_endpoint, of_key, of_fingerprint, now_at)
        ON CONFLICT (tenant, endpoint, key) DO UPDATE SET claimed = excluded.claimed
         WHERE r.fingerprint = excluded.fingerprint AND r.claimed < stale
           AND r.versions IS NULL AND r.status IS NULL;
        taken = FOUND;
        EXIT WHEN taken;
        SELECT r.fingerprint, r.versions, r.status, r.sealed
          INTO fingerprint, versions, status, sealed FROM receipt AS r
         WHERE r.tenant = of_tenant AND r.endpoint = of_endpoint AND r.key = of_key;
        EXIT WHEN FOUND; -- else it was given back in between
    END LOOP;
END $$;

-- Idempotency keys.

-- Claim a key, or return the existing claim: one row, `taken` or not.
-- A claim need not be durable when this returns: the commit that marks it comes later in the WAL,
-- so if the commit survives, the claim does too.
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
        EXIT WHEN FOUND; -- otherwise it was released in between
    END LOOP;
END $$;

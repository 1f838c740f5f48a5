-- Idempotency keys.

-- Claim a key, or return the existing claim: one row, `is_claimed` or not.
-- A claim need not be durable when this returns: the commit that marks it comes later in the WAL,
-- so if the commit survives, the claim does too.
CREATE FUNCTION claim_idempotency_key(
    key_tenant text, key_endpoint text, key_value text, request_fingerprint text,
    now_ms bigint, stale_before bigint,
    OUT is_claimed boolean, OUT fingerprint text, OUT versions text, OUT revision bigint,
    OUT status integer, OUT sealed text
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    LOOP
        INSERT INTO idempotency_key AS k (tenant, endpoint, key, fingerprint, claimed_at)
        VALUES (key_tenant, key_endpoint, key_value, request_fingerprint, now_ms)
        ON CONFLICT (tenant, endpoint, key) DO UPDATE SET claimed_at = excluded.claimed_at
         WHERE k.fingerprint = excluded.fingerprint AND k.claimed_at < stale_before
           AND k.versions IS NULL AND k.status IS NULL;
        is_claimed = FOUND;
        EXIT WHEN is_claimed;
        SELECT k.fingerprint, k.versions, k.revision, k.status, k.sealed
          INTO fingerprint, versions, revision, status, sealed FROM idempotency_key AS k
         WHERE k.tenant = key_tenant AND k.endpoint = key_endpoint AND k.key = key_value;
        EXIT WHEN FOUND; -- otherwise it was released in between
    END LOOP;
END $$;

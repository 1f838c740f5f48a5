-- Pruning of old versions: of one path by its commit, of all paths by garbage collection.
--
-- Both keep every version that a run can read (a row of run_layer names the revision of a scope
-- that the run froze) and all versions of an agent whose history is kept in git.

-- name: prune_version
DELETE FROM version AS v
 WHERE v.scope = ?1 AND v.path = ?2 AND v.version = ?3
   AND NOT EXISTS (
       SELECT 1 FROM run_layer AS l
        WHERE l.scope = ?1 AND l.revision >= v.revision AND l.revision <
              (SELECT n.revision FROM version AS n
                WHERE n.scope = ?1 AND n.path = ?2 AND n.version > ?3
                ORDER BY n.version LIMIT 1))
   AND NOT EXISTS (
       SELECT 1 FROM scope AS s
         JOIN record AS r ON r.tenant = s.tenant AND r.type = 'agent' AND r.id = s.name
        WHERE s.id = ?1 AND s.kind = 'agent'
          AND json_type(r.body, '$.config.workspaceGit.enabled') = 'true');

-- name: prunable_versions
SELECT v.scope, v.path, v.version
  FROM scope AS s
  LEFT JOIN record AS p ON p.tenant = s.tenant AND p.type = 'policy' AND p.id = 'policy'
 CROSS JOIN entry AS e ON e.scope = s.id
 CROSS JOIN version AS v ON v.scope = e.scope AND v.path = e.path AND v.version <= e.version
       - coalesce(json_extract(p.body, CASE WHEN s.kind = 'workspace' AND s.name LIKE 'ws\_%' ESCAPE '\'
                                            THEN '$.sharedLimits.maxVersions'
                                            ELSE '$.limits.maxVersions' END), 100)
 WHERE NOT EXISTS (
       SELECT 1 FROM run_layer AS l
        WHERE l.scope = v.scope AND l.revision >= v.revision AND l.revision <
              (SELECT n.revision FROM version AS n
                WHERE n.scope = v.scope AND n.path = v.path AND n.version > v.version
                ORDER BY n.version LIMIT 1))
   AND NOT EXISTS (
       SELECT 1 FROM record AS r
        WHERE r.tenant = s.tenant AND r.type = 'agent' AND r.id = s.name AND s.kind = 'agent'
          AND json_type(r.body, '$.config.workspaceGit.enabled') = 'true')
 LIMIT 100000;

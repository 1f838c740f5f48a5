// Changes of the workspace since a run's snapshot.

import { useQuery } from "@tanstack/react-query";
import { GitCompare } from "lucide-react";
import { Link, useSearchParams } from "react-router";
import { type Run, type RunChange, runChangeQuery, runChangesQuery } from "../../api/runs";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { UnifiedDiff } from "../../components/unified-diff";

const CHANGE_STYLES: Record<string, string> = { added: "good", removed: "bad", changed: "update" };

export function RunChanges({ run }: { run: Run }) {
  const changes = useQuery(runChangesQuery(run));
  const [params] = useSearchParams();
  return (
    <QueryResult query={changes}>
      {(items) => {
        const path = params.get("file") ?? items[0]?.path;
        if (!path)
          return (
            <EmptyState icon={GitCompare} title="No changes">
              <p>The workspace is identical to this run’s snapshot.</p>
            </EmptyState>
          );
        return (
          <div className="list-detail">
            <nav className="card path-list" aria-label="Changed files">
              {items.map((item) => (
                <ChangeLink key={item.path} change={item} isActive={item.path === path} />
              ))}
            </nav>
            <Difference run={run} path={path} />
          </div>
        );
      }}
    </QueryResult>
  );
}

function ChangeLink({ change, isActive }: { change: RunChange; isActive: boolean }) {
  return (
    <Link
      to={{ search: `?view=changes&file=${encodeURIComponent(change.path)}` }}
      className={isActive ? "active" : ""}
      aria-current={isActive ? "true" : undefined}
    >
      <span className="truncate bidi grow">{escapeText(change.path, 120)}</span>
      <span className={`badge ${CHANGE_STYLES[change.change] ?? ""}`}>{change.change}</span>
    </Link>
  );
}

function Difference({ run, path }: { run: Run; path: string }) {
  const change = useQuery(runChangeQuery(run, path));
  return (
    <article className="card" aria-label={escapeText(path, 120)}>
      <QueryResult query={change}>
        {(data) => (
          <>
            <header>
              <h2 className="truncate bidi">{escapeText(path, 120)}</h2>
              <span className="faint">{data ? versionRange(data) : "unchanged"}</span>
            </header>
            <div className="card-body">
              <UnifiedDiff text={data?.diff ?? ""} />
            </div>
          </>
        )}
      </QueryResult>
    </article>
  );
}

const versionRange = ({ beforeVersion, afterVersion }: RunChange) =>
  `${beforeVersion === null ? "absent" : `v${beforeVersion}`} → ${
    afterVersion === null ? "deleted" : `v${afterVersion}`
  }`;

// What shows something else now than the run saw, and how.

import { useQuery } from "@tanstack/react-query";
import { GitCompare } from "lucide-react";
import { Link, useSearchParams } from "react-router";
import { type Run, type RunChange, runChangeQuery, runChangesQuery } from "../../api/runs";
import { plain } from "../../components/escape-text";
import { Empty, Shown } from "../../components/query-states";
import { UnifiedDiff } from "../../components/unified-diff";

const LOOKS: Record<string, string> = { added: "good", removed: "bad", changed: "update" };

export function RunChanges({ run }: { run: Run }) {
  const changes = useQuery(runChangesQuery(run));
  const [params] = useSearchParams();
  return (
    <Shown query={changes}>
      {(found) => {
        const path = params.get("file") ?? found[0]?.path;
        if (!path)
          return (
            <Empty icon={GitCompare} title="Nothing has changed since">
              <p>Its workspace shows now what this run saw, to the byte.</p>
            </Empty>
          );
        return (
          <div className="list-and-one">
            <nav className="card path-list" aria-label="Changed files">
              {found.map((each) => (
                <ChangeLink key={each.path} change={each} on={each.path === path} />
              ))}
            </nav>
            <Difference run={run} path={path} />
          </div>
        );
      }}
    </Shown>
  );
}

function ChangeLink({ change, on }: { change: RunChange; on: boolean }) {
  return (
    <Link
      to={{ search: `?view=changes&file=${encodeURIComponent(change.path)}` }}
      className={on ? "on" : ""}
      aria-current={on ? "true" : undefined}
    >
      <span className="cut bidi grow">{plain(change.path, 120)}</span>
      <span className={`badge ${LOOKS[change.change] ?? ""}`}>{change.change}</span>
    </Link>
  );
}

function Difference({ run, path }: { run: Run; path: string }) {
  const change = useQuery(runChangeQuery(run, path));
  return (
    <article className="card" aria-label={plain(path, 120)}>
      <Shown query={change}>
        {(found) => (
          <>
            <header>
              <h2 className="cut bidi">{plain(path, 120)}</h2>
              <span className="faint">{found ? versions(found) : "the same as then"}</span>
            </header>
            <div className="inside">
              <UnifiedDiff text={found?.diff ?? ""} />
            </div>
          </>
        )}
      </Shown>
    </article>
  );
}

const versions = ({ beforeVersion, afterVersion }: RunChange) =>
  `${beforeVersion === null ? "not there" : `v${beforeVersion}`} then, ${
    afterVersion === null ? "gone" : `v${afterVersion}`
  } now`;

// Text of an old version, and the runs that read it.

import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { type FileScope, versionQuery } from "../../api/files";
import { readersQuery } from "../../api/provenance";
import { Button } from "../../components/button";
import { CopyButton } from "../../components/copy-button";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { RunStatusBadge } from "../runs/run-status";

interface VersionProps {
  scope: FileScope;
  path: string;
  version: number;
}

export function VersionText({ scope, path, version }: VersionProps) {
  const query = useQuery({ ...versionQuery(scope, path, version), retry: false });
  return (
    <QueryResult query={query} label="Loading version">
      {({ content, encoding }) =>
        encoding || content === undefined ? (
          <p className="faint">Not a text file.</p>
        ) : (
          <section className="stack tight" aria-label={`Text of version ${version}`}>
            <div className="row">
              <span className="grow faint">{content.length.toLocaleString("en")} characters</span>
              <CopyButton text={content} label={`Copy version ${version}`} />
            </div>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable */}
            <pre className="text version-text" tabIndex={0}>
              {content || "(empty file)"}
            </pre>
          </section>
        )
      }
    </QueryResult>
  );
}

export function VersionReaders({ scope, path, version }: VersionProps) {
  const query = useInfiniteQuery(readersQuery(scope, path, version));
  return (
    <QueryResult query={query} label="Loading runs">
      {({ pages }) => {
        const runs = pages.flatMap((page) => page.items);
        return (
          <section className="stack tight" aria-label={`Runs that read version ${version}`}>
            {runs.length === 0 && <p className="faint">No run that you may see read it.</p>}
            <ul className="lines">
              {runs.map((run) => (
                <li key={run.runId} className="row wrap">
                  <Link className="bidi" to={`/runs/${encodeURIComponent(run.runId)}?view=why`}>
                    {escapeText(run.workflowId, 60)}
                  </Link>
                  <RunStatusBadge status={run.status} />
                  <span className="faint">
                    <Time at={run.startedAt} />
                  </span>
                </li>
              ))}
            </ul>
            {query.hasNextPage && (
              <Button
                small
                busy={query.isFetchingNextPage}
                onClick={() => void query.fetchNextPage()}
              >
                Load more
              </Button>
            )}
          </section>
        );
      }}
    </QueryResult>
  );
}

// Files of a run's snapshot.

import { useQuery } from "@tanstack/react-query";
import { FileText } from "lucide-react";
import { Link, useSearchParams } from "react-router";
import { provenanceQuery } from "../../api/provenance";
import { type Run, runFileQuery, runFilesQuery } from "../../api/runs";
import { CopyButton } from "../../components/copy-button";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { layerOf } from "../prompt/layer";
import { FileOrigin } from "./file-origin";

export function SnapshotFiles({ run }: { run: Run }) {
  const files = useQuery(runFilesQuery(run.runId));
  const [params] = useSearchParams();
  return (
    <QueryResult query={files}>
      {(snapshot) => {
        const path = params.get("file") ?? snapshot[0]?.path;
        if (!path)
          return (
            <EmptyState icon={FileText} title="No files">
              <p>The workspace was empty when this run started.</p>
            </EmptyState>
          );
        return (
          <div className="list-detail">
            <nav className="card path-list" aria-label="Snapshot files">
              {snapshot.map(({ path: filePath, version, source }) => (
                <Link
                  key={filePath}
                  to={{ search: `?view=files&file=${encodeURIComponent(filePath)}` }}
                  className={filePath === path ? "active" : ""}
                  aria-current={filePath === path ? "true" : undefined}
                  title={`version ${version}, from ${layerOf(source).name}`}
                >
                  <span className={`swatch layer-${layerOf(source).kind}`} aria-hidden />
                  <span className="truncate bidi grow">{escapeText(filePath, 120)}</span>
                  <span className="faint">v{version}</span>
                </Link>
              ))}
            </nav>
            <SnapshotFile run={run} path={path} />
          </div>
        );
      }}
    </QueryResult>
  );
}

function SnapshotFile({ run, path }: { run: Run; path: string }) {
  const file = useQuery(runFileQuery(run.runId, path));
  const provenance = useQuery(provenanceQuery(run.runId));
  const origin = provenance.data?.files.find((item) => item.path === path);
  return (
    <article className="card" aria-label={escapeText(path, 120)}>
      <QueryResult query={file}>
        {({ content, encoding, version, source, error }) => (
          <>
            <header>
              <h2 className="truncate bidi">{escapeText(path, 120)}</h2>
              <span className="faint grow">
                v{version}, {layerOf(source).name}
              </span>
              {!encoding && <CopyButton text={content ?? ""} label="Copy text" />}
            </header>
            <div className="card-body stack">
              {origin && <FileOrigin file={origin} run={run} />}
              {content === undefined || encoding ? (
                <p className="soft">{escapeText(error ?? "Not a text file.", 300)}</p>
              ) : (
                <pre className="text">{content || "(empty file)"}</pre>
              )}
            </div>
          </>
        )}
      </QueryResult>
    </article>
  );
}

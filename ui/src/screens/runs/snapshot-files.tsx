// The files that a run sees, and the text of one, the same for ever.

import { useQuery } from "@tanstack/react-query";
import { FileText } from "lucide-react";
import { Link, useSearchParams } from "react-router";
import { type Run, runFileQuery, runFilesQuery } from "../../api/runs";
import { CopyButton } from "../../components/copy-button";
import { plain } from "../../components/escape-text";
import { Empty, Shown } from "../../components/query-states";
import { layerOf } from "../prompt/layer";

export function FrozenFiles({ run }: { run: Run }) {
  const files = useQuery(runFilesQuery(run.runId));
  const [params] = useSearchParams();
  return (
    <Shown query={files}>
      {(found) => {
        const path = params.get("file") ?? found[0]?.path;
        if (!path)
          return (
            <Empty icon={FileText} title="It saw no files">
              <p>The workspace was empty when this run began.</p>
            </Empty>
          );
        return (
          <div className="list-and-one">
            <nav className="card path-list" aria-label="Files then">
              {found.map(({ path: each, version, source }) => (
                <Link
                  key={each}
                  to={{ search: `?view=files&file=${encodeURIComponent(each)}` }}
                  className={each === path ? "on" : ""}
                  aria-current={each === path ? "true" : undefined}
                  title={`version ${version}, from ${layerOf(source).name}`}
                >
                  <span className={`swatch layer-${layerOf(source).kind}`} aria-hidden />
                  <span className="cut bidi grow">{plain(each, 120)}</span>
                  <span className="faint">v{version}</span>
                </Link>
              ))}
            </nav>
            <FrozenFile run={run} path={path} />
          </div>
        );
      }}
    </Shown>
  );
}

function FrozenFile({ run, path }: { run: Run; path: string }) {
  const file = useQuery(runFileQuery(run.runId, path));
  return (
    <article className="card" aria-label={plain(path, 120)}>
      <Shown query={file}>
        {({ content, version, source, error }) => (
          <>
            <header>
              <h2 className="cut bidi">{plain(path, 120)}</h2>
              <span className="faint grow">
                v{version}, {layerOf(source).name}
              </span>
              <CopyButton text={content ?? ""} label="Copy the text" />
            </header>
            <div className="inside">
              {content === undefined ? (
                <p className="soft">{plain(error ?? "It is not text.", 300)}</p>
              ) : (
                <pre className="text">{content || "It is empty."}</pre>
              )}
            </div>
          </>
        )}
      </Shown>
    </article>
  );
}

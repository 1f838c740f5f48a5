// Who wrote a frozen file, why, and who accepted it.

import { Link } from "react-router";
import { DEFAULTS, type FileScope, fileUrl } from "../../api/files";
import type { Author, FileProvenance, FileVersion } from "../../api/provenance";
import type { Run } from "../../api/runs";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import { compareUrl } from "../compare/references";

const REVIEWS: Record<string, string> = {
  recorded: "Recorded with the agent",
  accepted: "Accepted",
  "rolled-back": "Rolled back",
  overridden: "Overridden for this agent",
};

interface FileOriginProps {
  file: FileProvenance;
  run: Run;
}

export function FileOrigin({ file, run }: FileOriginProps) {
  const { written, origin, review, path } = file;
  return (
    <dl className="file-origin" aria-label="Origin">
      {written ? (
        <div>
          <dt>Written</dt>
          <dd>
            <VersionLine version={written} path={path} run={run} />
          </dd>
        </div>
      ) : (
        <div>
          <dt>Written</dt>
          <dd className="faint">The version was erased.</dd>
        </div>
      )}
      {review && (
        <div>
          <dt>{REVIEWS[review.kind] ?? review.kind}</dt>
          <dd>
            <AuthorName author={review.by} />, <Time at={review.at} />
            {review.key && (
              <span className="faint"> with key {escapeText(review.key.name, 60)}</span>
            )}
          </dd>
        </div>
      )}
      {origin && (
        <div>
          <dt>Pinned from</dt>
          <dd>
            <VersionLine version={origin} path={path} run={run} />
          </dd>
        </div>
      )}
      <div>
        <dt>Prompt</dt>
        <dd>
          {file.inPrompt ? (
            <Link to="?view=prompt">In the prompt</Link>
          ) : (
            <span className="faint">Not in the prompt</span>
          )}
        </dd>
      </div>
      <div>
        <dt>Compare</dt>
        <dd className="row wrap">
          {run.agentId && (
            <Link to={compareUrl(`run:${run.runId}/${path}`, `agent:${run.agentId}/${path}@now`)}>
              With now
            </Link>
          )}
          <Link to={compareUrl(`run:${run.runId}/${path}`)}>With another</Link>
        </dd>
      </div>
    </dl>
  );
}

/** A version in its layer, with author, reason, and links to its run and its history. */
function VersionLine({ version, path, run }: { version: FileVersion; path: string; run: Run }) {
  const scope = scopeOf(version, run);
  const label = `${version.layer} v${version.version}`;
  return (
    <>
      <AuthorName author={version.author} />, <Time at={version.writtenAt} />
      {version.reason && <span className="bidi">: {escapeText(version.reason, 300)}</span>}
      <span className="row wrap">
        {scope ? (
          <Link to={`${fileUrl(scope, path)}&panel=history`}>{label} in the history</Link>
        ) : (
          <span className="faint">{label}</span>
        )}
        {version.runId && <Link to={`/runs/${encodeURIComponent(version.runId)}`}>its run</Link>}
        {version.redacted && <span className="badge">redacted</span>}
      </span>
    </>
  );
}

function AuthorName({ author }: { author: Author }) {
  return <strong className="bidi">{escapeText(author.name ?? author.id, 80)}</strong>;
}

function scopeOf({ layer, layerId }: FileVersion, run: Run): FileScope | null {
  if (layer === "defaults") return DEFAULTS;
  if (layer === "agent" || layer === "template" || layer === "workspace")
    return { kind: layer, id: layerId };
  return layer === "pins" && run.agentId ? { kind: "agent", id: run.agentId } : null;
}

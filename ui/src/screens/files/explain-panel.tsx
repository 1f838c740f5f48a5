// Layers of a file, and why one of them is served.

import { useQuery } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { Link } from "react-router";
import { explainQuery, type FileExplanation, type FileScope, fileUrl } from "../../api/files";
import { toSentence } from "../../api/problem";
import { QueryResult } from "../../components/query-states";

type ExplainedLayer = FileExplanation["layers"][number];

const LAYER_NAMES: Record<string, string> = {
  agent: "This agent",
  pins: "Initial pin",
  template: "Template",
  defaults: "Defaults",
  workspace: "This workspace",
};

const WINNING_LAYERS: Record<string, string[]> = {
  "agent-override": ["agent"],
  "agent-override-pinned": ["agent"],
  "template-pinned": ["agent", "pins"],
};

/** The layer that is served. */
function findWinner({ source, layers }: FileExplanation): ExplainedLayer | undefined {
  const kinds = source ? (WINNING_LAYERS[source] ?? [source]) : [];
  return layers.find(({ kind, sha256 }) => kinds.includes(kind) && sha256);
}

export function ExplainPanel({ scope, path }: { scope: FileScope; path: string }) {
  const query = useQuery(explainQuery(scope, path));
  return (
    <QueryResult query={query} label="Loading layers">
      {(explanation) => (
        <div className="stack">
          <p>{toSentence(explanation.why)}</p>
          <ol className="layers">
            {explanation.layers.map((layer) => (
              <LayerItem
                key={layer.kind + layer.name}
                layer={layer}
                path={path}
                isWinner={layer === findWinner(explanation)}
              />
            ))}
          </ol>
        </div>
      )}
    </QueryResult>
  );
}

function LayerItem({
  layer,
  path,
  isWinner,
}: {
  layer: ExplainedLayer;
  path: string;
  isWinner: boolean;
}) {
  const { kind, name, version, sha256, baseSha256 } = layer;
  const isLinkable = kind === "template" || kind === "defaults";
  const title = LAYER_NAMES[kind] ?? kind;
  return (
    <li className={isWinner ? "layer active" : "layer"}>
      <div className="row">
        <strong>
          {isLinkable && sha256 ? (
            <Link to={fileUrl({ kind, id: name } as FileScope, path)}>{title}</Link>
          ) : (
            title
          )}
        </strong>
        {isWinner && (
          <span className="badge good">
            <Check size={12} aria-hidden /> served
          </span>
        )}
      </div>
      <div className="faint">{versionLabel(version, sha256)}</div>
      {sha256 && <Digest name="sha256" hex={sha256} />}
      {baseSha256 && (
        <Digest name={baseSha256 === sha256 ? "reviewed" : "based on"} hex={baseSha256} />
      )}
    </li>
  );
}

function versionLabel(version: number | null, sha256: string | null): string {
  if (version === null) return "not present";
  return sha256 ? `version ${version}` : `deleted in version ${version}`;
}

const Digest = ({ name, hex }: { name: string; hex: string }) => (
  <div className="faint" title={hex}>
    {name} <code>{hex.slice(0, 12)}…</code>
  </div>
);

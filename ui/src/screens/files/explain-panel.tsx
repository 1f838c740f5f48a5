// Every layer's say about a file, and why the one that is served won.

import { useQuery } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { Link } from "react-router";
import { addressOf, type Explained, explainQuery, type Place } from "../../api/files";
import { sentence } from "../../api/problem";
import { Shown } from "../../components/query-states";

type Said = Explained["layers"][number];

const NAMES: Record<string, string> = {
  agent: "This agent",
  pins: "The pins it was made with",
  template: "The template",
  defaults: "The defaults",
  workspace: "This workspace",
};

const WINNERS: Record<string, string[]> = {
  "agent-override": ["agent"],
  "agent-override-pinned": ["agent"],
  "template-pinned": ["agent", "pins"],
};

/** The first layer that speaks among those that the source names. */
function winnerOf({ source, layers }: Explained): Said | undefined {
  const kinds = source ? (WINNERS[source] ?? [source]) : [];
  return layers.find(({ kind, sha256 }) => kinds.includes(kind) && sha256);
}

export function ExplainPanel({ place, path }: { place: Place; path: string }) {
  const query = useQuery(explainQuery(place, path));
  return (
    <Shown query={query} what="Asking every layer">
      {(explained) => (
        <div className="stack">
          <p>{sentence(explained.why)}</p>
          <ol className="layers">
            {explained.layers.map((said) => (
              <Layer
                key={said.kind + said.name}
                said={said}
                path={path}
                isWinner={said === winnerOf(explained)}
              />
            ))}
          </ol>
        </div>
      )}
    </Shown>
  );
}

function Layer({ said, path, isWinner }: { said: Said; path: string; isWinner: boolean }) {
  const { kind, name, version, sha256, baseSha256 } = said;
  const beneath = kind === "template" || kind === "defaults";
  const title = NAMES[kind] ?? kind;
  return (
    <li className={isWinner ? "layer on" : "layer"}>
      <div className="row">
        <strong>
          {beneath && sha256 ? (
            <Link to={addressOf({ kind, id: name } as Place, path)}>{title}</Link>
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
      <div className="faint">{words(version, sha256)}</div>
      {sha256 && <Digest name="sha256" hex={sha256} />}
      {baseSha256 && (
        <Digest name={baseSha256 === sha256 ? "reviewed as it is" : "based on"} hex={baseSha256} />
      )}
    </li>
  );
}

function words(version: number | null, sha256: string | null): string {
  if (version === null) return "says nothing of it";
  return sha256 ? `version ${version}` : `took it away in version ${version}`;
}

const Digest = ({ name, hex }: { name: string; hex: string }) => (
  <div className="faint" title={hex}>
    {name} <code>{hex.slice(0, 12)}…</code>
  </div>
);

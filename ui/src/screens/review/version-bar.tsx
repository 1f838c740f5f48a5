import { useQuery } from "@tanstack/react-query";
import type { ResponseBody } from "../../api/client";
import { pinnedVersionsQuery } from "../../api/reviews";
import { escapeText } from "../../components/escape-text";

type Versions = ResponseBody<"/v1/templates/{id}/pins/{path}/versions">;

interface Segment {
  name: string;
  agents: number;
  kind: "latest" | "earlier" | "older" | "other";
}

const MAX_EARLIER = 3;

interface VersionBarProps {
  templateId: string;
  path: string;
  /** Shows the path as its heading. */
  named?: boolean;
}

/** How many agents have which version of a pinned file: one bar, and its numbers as text. */
export function VersionBar({ templateId, path, named = false }: VersionBarProps) {
  const { data } = useQuery(pinnedVersionsQuery(templateId, path));
  if (!data || data.total === 0) return null;
  const segments = segmentsOf(data);
  const name = escapeText(path, 80);
  return (
    <section className="version-bar stack tight" aria-label={`Versions of ${name} in use`}>
      <h3>{named ? <span className="mono">{name}</span> : "Versions in use"}</h3>
      <div className="version-segments" aria-hidden>
        {segments.map((segment) => (
          <span
            key={segment.name}
            className={`version-${segment.kind}`}
            style={{ flexGrow: segment.agents }}
            title={describe(segment)}
          />
        ))}
      </div>
      <ul className="row wrap layer-legend">
        {segments.map((segment) => (
          <li key={segment.name} className="row">
            <span className={`swatch version-${segment.kind}`} aria-hidden />
            {describe(segment)}
          </li>
        ))}
        {data.declined > 0 && <li>{data.declined.toLocaleString("en")} declined the latest</li>}
      </ul>
    </section>
  );
}

const describe = ({ name, agents }: Segment) => `${name}: ${agents.toLocaleString("en")}`;

/** The latest version first, then those that most agents have; the rest as one. */
function segmentsOf({ versions, offeredSha256 }: Versions): Segment[] {
  const isLatest = ({ sha256 }: Versions["versions"][number]) => sha256 === offeredSha256;
  const latest = versions.filter(isLatest).map((version) => ({
    name: version.version ? `Version ${version.version} (latest)` : nameOf(version),
    agents: version.agents,
    kind: "latest" as const,
  }));
  const others = versions
    .filter((version) => !isLatest(version))
    .toSorted((a, b) => b.agents - a.agents);
  const earlier = others.slice(0, MAX_EARLIER).map((version, index) => ({
    name: nameOf(version),
    agents: version.agents,
    kind: index === 0 ? ("earlier" as const) : ("older" as const),
  }));
  const rest = others.slice(MAX_EARLIER);
  const agents = rest.reduce((sum, version) => sum + version.agents, 0);
  const name = `${rest.length} other ${rest.length === 1 ? "version" : "versions"}`;
  return [...latest, ...earlier, ...(agents > 0 ? [{ name, agents, kind: "other" as const }] : [])];
}

function nameOf({ sha256, version }: Versions["versions"][number]): string {
  if (sha256 === null) return "Without the file";
  return version ? `Version ${version}` : `Text ${sha256.slice(0, 8)}`;
}

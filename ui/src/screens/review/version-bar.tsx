import { useQuery } from "@tanstack/react-query";
import { pinnedVersionsQuery } from "../../api/reviews";

/** How many agents have which version of a pinned file, as one bar with its numbers. */
export function VersionBar({ templateId, path }: { templateId: string; path: string }) {
  const { data } = useQuery(pinnedVersionsQuery(templateId, path));
  if (!data || data.total === 0) return null;
  const current = data.versions.find(({ sha256 }) => sha256 === data.offeredSha256)?.agents ?? 0;
  return (
    <section className="stack tight" aria-label="Versions in use">
      <meter
        className="progress"
        min={0}
        max={data.total}
        value={current}
        aria-label="Agents with the latest version"
      />
      <ul className="row wrap">
        {data.versions.map(({ sha256, agents, version }) => (
          <li key={sha256 ?? ""} className="badge">
            {sha256 === null ? "none" : version ? `version ${version}` : sha256.slice(0, 8)}
            {sha256 !== null && sha256 === data.offeredSha256 && " (latest)"}:{" "}
            {agents.toLocaleString("en")}
          </li>
        ))}
        {data.declined > 0 && (
          <li className="badge">declined: {data.declined.toLocaleString("en")}</li>
        )}
      </ul>
    </section>
  );
}

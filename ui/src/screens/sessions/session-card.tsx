// One session in the list, with its matches.

import { Link } from "react-router";
import type { Match, SessionRow } from "../../api/transcripts";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import { HighlightedText } from "./highlighted-text";

interface SessionCardProps {
  agentId: string;
  session: SessionRow;
  query: string;
}

export function SessionCard({ agentId, session, query }: SessionCardProps) {
  const { id, sourcePlugin, scope, entryCount, startedAt, lastAt, endedAt, matches } = session;
  const url = `/agents/${encodeURIComponent(agentId)}/sessions/${encodeURIComponent(id)}`;
  const search = query ? `?q=${encodeURIComponent(query)}` : "";
  return (
    <li className="card">
      <div className="row wrap session-header">
        <Link className="session-link bidi" to={url + search}>
          {escapeText(sourcePlugin || "Session", 60)}
        </Link>
        <span className="badge">{scope}</span>
        {!endedAt && <span className="badge good">open</span>}
        <span className="faint grow truncate">
          <code>{id}</code>
        </span>
        <span className="faint">
          {entryCount.toLocaleString("en")} {entryCount === 1 ? "entry" : "entries"}, last{" "}
          <Time at={entryCount ? lastAt : startedAt} />
        </span>
      </div>
      {matches && matches.length > 0 && (
        <ul className="matches" aria-label="Matches">
          {matches.map((match) => (
            <MatchRow key={match.number} match={match} query={query} url={url} />
          ))}
        </ul>
      )}
    </li>
  );
}

function MatchRow({ match, query, url }: { match: Match; query: string; url: string }) {
  const { number, role, preview, truncated } = match;
  return (
    <li>
      <Link to={`${url}?q=${encodeURIComponent(query)}&entry=${number}`} className="row">
        <span className="faint">
          {number} {role}
        </span>
        <span className="truncate bidi grow">
          <HighlightedText text={escapeText(preview, 220)} query={query} />
          {truncated && "…"}
        </span>
      </Link>
    </li>
  );
}

// One session in the list, with what was found in it.

import { Link } from "react-router";
import type { Match, SessionListed } from "../../api/transcripts";
import { plain } from "../../components/escape-text";
import { Time } from "../../components/time";
import { Marked } from "./highlighted-text";

interface SessionCardProps {
  agentId: string;
  session: SessionListed;
  words: string;
}

export function SessionCard({ agentId, session, words }: SessionCardProps) {
  const { id, sourcePlugin, scope, entryCount, startedAt, lastAt, endedAt, matches } = session;
  const at = `/agents/${encodeURIComponent(agentId)}/sessions/${encodeURIComponent(id)}`;
  const query = words ? `?q=${encodeURIComponent(words)}` : "";
  return (
    <li className="card">
      <div className="row wrap session-head">
        <Link className="session-link bidi" to={at + query}>
          {plain(sourcePlugin || "no source named", 60)}
        </Link>
        <span className="badge">{scope}</span>
        {!endedAt && <span className="badge good">open</span>}
        <span className="faint grow cut">
          <code>{id}</code>
        </span>
        <span className="faint">
          {entryCount.toLocaleString("en")} {entryCount === 1 ? "entry" : "entries"}, last said{" "}
          <Time at={entryCount ? lastAt : startedAt} />
        </span>
      </div>
      {matches && matches.length > 0 && (
        <ul className="matches" aria-label="Found in this session">
          {matches.map((match) => (
            <MatchLine key={match.number} match={match} words={words} at={at} />
          ))}
        </ul>
      )}
    </li>
  );
}

function MatchLine({ match, words, at }: { match: Match; words: string; at: string }) {
  const { number, role, preview, truncated } = match;
  return (
    <li>
      <Link to={`${at}?q=${encodeURIComponent(words)}&entry=${number}`} className="row">
        <span className="faint">
          {number} {role}
        </span>
        <span className="cut bidi grow">
          <Marked text={plain(preview, 220)} words={words} />
          {truncated && "…"}
        </span>
      </Link>
    </li>
  );
}

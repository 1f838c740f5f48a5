// What waits for somebody: updates to be reviewed, calls to be approved, dreams to be let land.

import { useQuery } from "@tanstack/react-query";
import { CheckCheck } from "lucide-react";
import { useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useAuthors } from "../../api/authors";
import { type InboxShown, inboxQuery } from "../../api/inbox";
import { plain } from "../../components/escape-text";
import { Empty, Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { PinsWaiting } from "./pending-updates";
import { ReviewDialog } from "./review-dialog";

export default function InboxScreen() {
  const [params] = useSearchParams();
  const everybody = params.has("all");
  const mine = useQuery(inboxQuery(true));
  const all = useQuery(inboxQuery(false));
  const inbox = everybody ? all : mine;
  const [reviewed, setReviewed] = useState<{ agentId: string; path: string } | null>(null);
  return (
    <Screen title="Inbox" under="What waits for a decision">
      <nav className="tabs" aria-label="Whose">
        <Whose to="/inbox" on={!everybody} name="For me" found={mine.data} />
        <Whose to="/inbox?all" on={everybody} name="For everybody" found={all.data} />
      </nav>
      <Shown query={inbox}>
        {(found) => (
          <>
            {isEmpty(found) && <Nothing everybody={everybody} />}
            <PinsWaiting found={found} onReview={setReviewed} />
            <Approvals found={found} />
            <Dreams found={found} />
          </>
        )}
      </Shown>
      {reviewed && <ReviewDialog {...reviewed} onClose={() => setReviewed(null)} />}
    </Screen>
  );
}

const countOf = ({ counts }: InboxShown) => counts.pins + counts.approvals + counts.dreams;
const isEmpty = (found: InboxShown) => countOf(found) === 0;

interface WhoseProps {
  to: string;
  on: boolean;
  name: string;
  found: InboxShown | undefined;
}

const Whose = ({ to, on, name, found }: WhoseProps) => (
  <Link to={to} className={on ? "on" : ""} aria-current={on ? "page" : undefined}>
    {name} {found && <span className="badge">{countOf(found)}</span>}
  </Link>
);

function Nothing({ everybody }: { everybody: boolean }) {
  return (
    <Empty icon={CheckCheck} title={everybody ? "Nothing waits" : "Nothing waits for you"}>
      <p>
        Here come edits of pinned files such as GUARDRAILS.md, which no agent has before somebody
        has looked; calls of tools that need a yes; and dreams that want a review.
      </p>
      {!everybody && (
        <p>
          Yours are the agents that work for you or belong to you.{" "}
          <Link to="/inbox?all">Look at everybody's</Link>
        </p>
      )}
    </Empty>
  );
}

function Approvals({ found: { approvals, counts } }: { found: InboxShown }) {
  const authorOf = useAuthors();
  if (approvals.length === 0) return null;
  return (
    <section className="card">
      <header>
        <h2 className="grow">Approvals</h2>
        <span className="badge update">{counts.approvals}</span>
      </header>
      <ul className="inbox-list">
        {approvals.map(({ id, tool, requestedBy, requestedAt, expiresAt }) => (
          <li key={id} className="row">
            <Link className="grow cut" to={`/approvals/${encodeURIComponent(id)}`}>
              <strong>{plain(tool, 60)}</strong>{" "}
              <span className="soft bidi">asked by {authorOf(requestedBy)}</span>
            </Link>
            <span className="faint">
              <Time at={requestedAt} />, ends <Time at={expiresAt} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Dreams({ found: { dreams, counts } }: { found: InboxShown }) {
  if (dreams.length === 0) return null;
  return (
    <section className="card">
      <header>
        <h2 className="grow">Dreams</h2>
        <span className="badge update">{counts.dreams}</span>
      </header>
      <ul className="inbox-list">
        {dreams.map(({ dreamId, agentId, agentName, promoted, at }) => (
          <li key={dreamId} className="row">
            <Link className="grow cut" to={`/agents/${encodeURIComponent(agentId)}/memory`}>
              <strong className="bidi">{plain(agentName, 80)}</strong>{" "}
              <span className="soft">
                would promote {promoted} {promoted === 1 ? "memory" : "memories"}
              </span>
            </Link>
            <span className="faint">
              <Time at={at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

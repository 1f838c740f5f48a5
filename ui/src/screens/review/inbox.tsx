// Inbox: pinned updates, approvals and dreams that need a decision.

import { useQuery } from "@tanstack/react-query";
import { CheckCheck } from "lucide-react";
import { useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useAuthorNames } from "../../api/authors";
import { type Inbox, inboxQuery } from "../../api/inbox";
import { isAdmin } from "../../api/session";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { DoneReviews } from "./done-reviews";
import { PendingUpdates } from "./pending-updates";
import { ReviewDialog } from "./review-dialog";
import { WaitingDreams } from "./waiting-dreams";

export default function InboxScreen() {
  const [params] = useSearchParams();
  const showsAll = params.has("all");
  const mine = useQuery(inboxQuery(true));
  const all = useQuery(inboxQuery(false));
  const query = showsAll ? all : mine;
  const admin = isAdmin(useSession());
  const showsDone = admin && params.has("done");
  const [reviewing, setReviewing] = useState<{ agentId: string; path: string } | null>(null);
  return (
    <Screen title="Inbox" subtitle="Updates, approvals and dreams that need a decision">
      <nav className="tabs" aria-label="Inbox">
        <InboxTab to="/inbox" isActive={!(showsAll || showsDone)} name="Mine" inbox={mine.data} />
        <InboxTab to="/inbox?all" isActive={showsAll} name="All" inbox={all.data} />
        {admin && <InboxTab to="/inbox?done" isActive={showsDone} name="Done" inbox={undefined} />}
      </nav>
      {showsDone && <DoneReviews />}
      {!showsDone && (
        <QueryResult query={query}>
          {(inbox) => (
            <>
              {isEmpty(inbox) && <EmptyInbox showsAll={showsAll} />}
              <PendingUpdates inbox={inbox} mine={!showsAll} onReview={setReviewing} />
              <Approvals inbox={inbox} />
              <WaitingDreams inbox={inbox} mine={!showsAll} />
            </>
          )}
        </QueryResult>
      )}
      {reviewing && <ReviewDialog {...reviewing} onClose={() => setReviewing(null)} />}
    </Screen>
  );
}

const countOf = ({ counts }: Inbox) => counts.pins + counts.approvals + counts.dreams;
const isEmpty = (inbox: Inbox) => countOf(inbox) === 0;

interface InboxTabProps {
  to: string;
  isActive: boolean;
  name: string;
  inbox: Inbox | undefined;
}

const InboxTab = ({ to, isActive, name, inbox }: InboxTabProps) => (
  <Link to={to} className={isActive ? "active" : ""} aria-current={isActive ? "page" : undefined}>
    {name} {inbox && <span className="badge">{countOf(inbox).toLocaleString("en")}</span>}
  </Link>
);

function EmptyInbox({ showsAll }: { showsAll: boolean }) {
  return (
    <EmptyState icon={CheckCheck} title={showsAll ? "Inbox is empty" : "Nothing for you to review"}>
      <p>
        Updates of pinned files such as GUARDRAILS.md, tool calls that need approval and dreams that
        need review appear here.
      </p>
      {!showsAll && (
        <p>
          This shows agents that work for you or that you own.{" "}
          <Link to="/inbox?all">Show all agents</Link>
        </p>
      )}
    </EmptyState>
  );
}

function Approvals({ inbox: { approvals, counts } }: { inbox: Inbox }) {
  const authorOf = useAuthorNames();
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
            <Link className="grow truncate" to={`/approvals/${encodeURIComponent(id)}`}>
              <strong>{escapeText(tool, 60)}</strong>{" "}
              <span className="soft bidi">requested by {authorOf(requestedBy)}</span>
            </Link>
            <span className="faint">
              <Time at={requestedAt} />, expires <Time at={expiresAt} />
            </span>
          </li>
        ))}
      </ul>
      {counts.approvals > approvals.length && (
        <p className="card-body">
          <Link to="/approvals">Show all {counts.approvals.toLocaleString("en")} approvals</Link>
        </p>
      )}
    </section>
  );
}

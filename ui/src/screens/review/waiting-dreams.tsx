import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { type Inbox, waitingDreamsQuery } from "../../api/inbox";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { ErrorNotice, Loading } from "../../components/query-states";
import { Time } from "../../components/time";

/** Dreams that need a review, in pages. */
export function WaitingDreams({ inbox: { counts }, mine }: { inbox: Inbox; mine: boolean }) {
  return counts.dreams === 0 ? null : <DreamList total={counts.dreams} mine={mine} />;
}

function DreamList({ total, mine }: { total: number; mine: boolean }) {
  const query = useInfiniteQuery(waitingDreamsQuery(mine));
  const dreams = query.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <section className="card">
      <header>
        <h2 className="grow">Dreams</h2>
        <span className="badge update">{total.toLocaleString("en")}</span>
      </header>
      {query.isError && !query.data && <ErrorNotice error={query.error} />}
      {query.isPending && <Loading label="Loading dreams" />}
      <ul className="inbox-list">
        {dreams.map(({ dreamId, agentId, agentName, promoted, at }) => (
          <li key={dreamId} className="row">
            <Link className="grow truncate" to={`/agents/${encodeURIComponent(agentId)}/memory`}>
              <strong className="bidi">{escapeText(agentName, 80)}</strong>{" "}
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
      {query.hasNextPage && (
        <div className="card-body row">
          <Button small busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show more dreams
          </Button>
        </div>
      )}
    </section>
  );
}

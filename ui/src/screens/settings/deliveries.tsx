// What was posted to an address, or will be: every attempt, and what came back.

import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { RotateCcw, Send } from "lucide-react";
import { type Delivery, deliveriesQuery, replayDelivery } from "../../api/webhooks";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { InertText } from "../../components/literal-text";
import { Empty, Loading, Refused } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";

export function Deliveries({ id }: { id: string }) {
  const log = useInfiniteQuery(deliveriesQuery(id));
  if (log.isError && !log.data) return <Refused error={log.error} />;
  if (!log.data) return <Loading />;
  const deliveries = log.data.pages.flatMap(({ items }) => items);
  if (!deliveries.length) {
    return (
      <Empty icon={Send} title="Nothing posted yet">
        <p>The next event that it is told of appears here, with every attempt to deliver it.</p>
      </Empty>
    );
  }
  return (
    <>
      <ul className="stack" aria-label="Deliveries">
        {deliveries.map((delivery) => (
          <li key={delivery.id} className="card">
            <One delivery={delivery} webhook={id} />
          </li>
        ))}
      </ul>
      {log.hasNextPage && (
        <div>
          <Button busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
            Older ones
          </Button>
        </div>
      )}
    </>
  );
}

const LOOKS = { delivered: "badge good", failed: "badge bad", pending: "badge update" };

function One({ delivery, webhook }: { delivery: Delivery; webhook: string }) {
  const queries = useQueryClient();
  const again = useMutation({
    mutationFn: () => replayDelivery(webhook, delivery.id),
    onSuccess: () => toast("It is posted once more."),
    onSettled: () => queries.invalidateQueries({ queryKey: ["webhooks", webhook] }),
  });
  return (
    <>
      <header className="row wrap">
        <span className={LOOKS[delivery.state]}>{delivery.state}</span>
        <h3 className="mono">{plain(delivery.type, 60)}</h3>
        <span className="faint">
          <Time at={delivery.createdAt} />
          {delivery.state === "pending" && (
            <>
              , next attempt <Time at={delivery.dueAt} />
            </>
          )}
        </span>
        <Button
          small
          className="end"
          icon={RotateCcw}
          busy={again.isPending}
          onClick={() => again.mutate()}
        >
          Replay
        </Button>
      </header>
      <div className="inside stack tight">
        <Attempts delivery={delivery} />
        <details>
          <summary>What is posted</summary>
          <InertText text={JSON.stringify(delivery.payload, null, 2)} label="What is posted" />
        </details>
      </div>
    </>
  );
}

function Attempts({ delivery: { attempts, tries } }: { delivery: Delivery }) {
  if (!attempts.length) return <p className="faint">Not tried yet.</p>;
  return (
    <ol className="lines" aria-label={`${tries} attempts`}>
      {attempts.map(({ at, status, problem, milliseconds }) => (
        <li key={at} className="row wrap">
          <Time at={at} />
          <strong>{status ?? "no answer"}</strong>
          {problem && <span className="soft">{plain(problem, 200)}</span>}
          <span className="faint">{milliseconds.toLocaleString("en")} ms</span>
        </li>
      ))}
    </ol>
  );
}

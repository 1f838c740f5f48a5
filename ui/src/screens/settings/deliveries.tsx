// Delivery log of a webhook, with every attempt.

import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { RotateCcw, Send } from "lucide-react";
import { type Delivery, deliveriesQuery, replayDelivery } from "../../api/webhooks";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { LiteralText } from "../../components/literal-text";
import { MoreRows, rowsOf } from "../../components/paged-rows";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";

export function Deliveries({ id }: { id: string }) {
  const log = useInfiniteQuery(deliveriesQuery(id));
  if (log.isError && !log.data) return <ErrorNotice error={log.error} />;
  if (!log.data) return <Loading />;
  const deliveries = rowsOf(log);
  if (!deliveries.length) {
    return (
      <EmptyState icon={Send} title="No deliveries yet">
        <p>Deliveries appear here with every attempt.</p>
      </EmptyState>
    );
  }
  return (
    <>
      <ul className="stack" aria-label="Deliveries">
        {deliveries.map((delivery) => (
          <li key={delivery.id} className="card">
            <DeliveryCard delivery={delivery} webhook={id} />
          </li>
        ))}
      </ul>
      <MoreRows query={log} noun="deliveries" />
    </>
  );
}

const STATE_STYLES = { delivered: "badge good", failed: "badge bad", pending: "badge update" };

function DeliveryCard({ delivery, webhook }: { delivery: Delivery; webhook: string }) {
  const queries = useQueryClient();
  const replay = useMutation({
    mutationFn: () => replayDelivery(webhook, delivery.id),
    onSuccess: () => toast("Delivery replayed"),
    onSettled: () => queries.invalidateQueries({ queryKey: ["webhooks", webhook] }),
  });
  return (
    <>
      <header className="row wrap">
        <span className={STATE_STYLES[delivery.state]}>{delivery.state}</span>
        <h3 className="mono">{escapeText(delivery.type, 60)}</h3>
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
          busy={replay.isPending}
          onClick={() => replay.mutate()}
        >
          Replay
        </Button>
      </header>
      <div className="card-body stack tight">
        <Attempts delivery={delivery} />
        <details>
          <summary>Payload</summary>
          <LiteralText text={JSON.stringify(delivery.payload, null, 2)} label="Payload" />
        </details>
      </div>
    </>
  );
}

function Attempts({ delivery: { attempts, tries } }: { delivery: Delivery }) {
  if (!attempts.length) return <p className="faint">No attempts yet.</p>;
  return (
    <ol className="lines" aria-label={`${tries} attempts`}>
      {attempts.map(({ at, status, problem, milliseconds }) => (
        <li key={at} className="row wrap">
          <Time at={at} />
          <strong>{status ?? "no response"}</strong>
          {problem && <span className="soft">{escapeText(problem, 200)}</span>}
          <span className="faint">{milliseconds.toLocaleString("en")} ms</span>
        </li>
      ))}
    </ol>
  );
}

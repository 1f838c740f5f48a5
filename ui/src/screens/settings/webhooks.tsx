// Addresses that are told what happens.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pause, Play, Plus, Webhook as WebhookIcon } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { may } from "../../api/session";
import { changeWebhook, type Webhook, webhooksQuery } from "../../api/webhooks";
import { OnlyAdmins } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { ShownOnce } from "../../components/one-time-secret";
import { Empty, Shown } from "../../components/query-states";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { Part } from "./settings-section";
import { WebhookForm } from "./webhook-form";

export default function Webhooks() {
  const [making, setMaking] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const able = may(useSession(), "tenant:admin");
  return (
    <Part
      title="Webhooks"
      under="Addresses that are told what happens, signed, and tried again until they answer."
      action={
        able && (
          <Button kind="primary" icon={Plus} onClick={() => setMaking(true)}>
            New webhook
          </Button>
        )
      }
    >
      {able ? <Table /> : <OnlyAdmins what="Telling other addresses" />}
      {making && (
        <WebhookForm
          onClose={() => setMaking(false)}
          onSaved={(made) => setSecret(made.secret ?? null)}
        />
      )}
      {secret && (
        <ShownOnce
          title="The webhook is there"
          what="The secret"
          text={secret}
          onClose={() => setSecret(null)}
        />
      )}
    </Part>
  );
}

function Table() {
  return (
    <Shown query={useQuery(webhooksQuery)}>
      {(webhooks) =>
        webhooks.length ? (
          <div className="table-wrap">
            <table className="table">
              <thead>
                <tr>
                  <th>Address</th>
                  <th className="only-large">Events</th>
                  <th>Standing</th>
                  <th className="only-large">Changed</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {webhooks.map((webhook) => (
                  <Row key={webhook.id} webhook={webhook} />
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          <Empty icon={WebhookIcon} title="No webhooks yet">
            <p>
              A webhook posts events to your own server, after the Standard Webhooks convention.
              Each delivery is logged here and can be replayed.
            </p>
          </Empty>
        )
      }
    </Shown>
  );
}

function Row({ webhook }: { webhook: Webhook }) {
  return (
    <tr>
      <td className="named">
        <Link className="bidi cut" to={`/settings/webhooks/${webhook.id}`}>
          {plain(webhook.url, 120)}
        </Link>
      </td>
      <td className="faint only-large">{eventsOf(webhook)}</td>
      <td>
        <WebhookStanding active={webhook.active} />
      </td>
      <td className="only-large">
        <Time at={webhook.updatedAt} />
      </td>
      <td>
        <PauseButton webhook={webhook} />
      </td>
    </tr>
  );
}

export const eventsOf = ({ events }: Webhook) =>
  events.includes("*") ? "everything" : events.join(", ");

export const WebhookStanding = ({ active }: { active: boolean }) => (
  <span className={active ? "badge good" : "badge"}>{active ? "active" : "paused"}</span>
);

export function PauseButton({ webhook }: { webhook: Webhook }) {
  const queries = useQueryClient();
  const turn = useMutation({
    mutationFn: () => changeWebhook(webhook.id, { active: !webhook.active }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["webhooks"] }),
  });
  return (
    <Button
      small
      icon={webhook.active ? Pause : Play}
      busy={turn.isPending}
      onClick={() => turn.mutate()}
    >
      {webhook.active ? "Pause" : "Resume"}
    </Button>
  );
}

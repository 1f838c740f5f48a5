// Addresses that are told what happens.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pause, Play, Plus, Webhook as WebhookIcon } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { hasPermission } from "../../api/session";
import { changeWebhook, type Webhook, webhooksQuery } from "../../api/webhooks";
import { AdminNotice } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { OneTimeSecretDialog } from "../../components/one-time-secret";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { SettingsSection } from "./settings-section";
import { WebhookForm } from "./webhook-form";

export default function Webhooks() {
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const admin = hasPermission(useSession(), "tenant:admin");
  return (
    <SettingsSection
      title="Webhooks"
      description="Addresses that are told what happens, signed, and tried again until they answer."
      action={
        admin && (
          <Button kind="primary" icon={Plus} onClick={() => setCreating(true)}>
            New webhook
          </Button>
        )
      }
    >
      {admin ? <Table /> : <AdminNotice feature="Telling other addresses" />}
      {isCreating && (
        <WebhookForm
          onClose={() => setCreating(false)}
          onSaved={(created) => setSecret(created.secret ?? null)}
        />
      )}
      {secret && (
        <OneTimeSecretDialog
          title="The webhook is there"
          label="The secret"
          text={secret}
          onClose={() => setSecret(null)}
        />
      )}
    </SettingsSection>
  );
}

function Table() {
  return (
    <QueryResult query={useQuery(webhooksQuery)}>
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
          <EmptyState icon={WebhookIcon} title="No webhooks yet">
            <p>
              A webhook posts events to your own server, after the Standard Webhooks convention.
              Each delivery is logged here and can be replayed.
            </p>
          </EmptyState>
        )
      }
    </QueryResult>
  );
}

function Row({ webhook }: { webhook: Webhook }) {
  return (
    <tr>
      <td className="named">
        <Link className="bidi cut" to={`/settings/webhooks/${webhook.id}`}>
          {escapeText(webhook.url, 120)}
        </Link>
      </td>
      <td className="faint only-large">{eventsLabel(webhook)}</td>
      <td>
        <WebhookStatus active={webhook.active} />
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

export const eventsLabel = ({ events }: Webhook) =>
  events.includes("*") ? "everything" : events.join(", ");

export const WebhookStatus = ({ active }: { active: boolean }) => (
  <span className={active ? "badge good" : "badge"}>{active ? "active" : "paused"}</span>
);

export function PauseButton({ webhook }: { webhook: Webhook }) {
  const queries = useQueryClient();
  const toggle = useMutation({
    mutationFn: () => changeWebhook(webhook.id, { active: !webhook.active }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["webhooks"] }),
  });
  return (
    <Button
      small
      icon={webhook.active ? Pause : Play}
      busy={toggle.isPending}
      onClick={() => toggle.mutate()}
    >
      {webhook.active ? "Pause" : "Resume"}
    </Button>
  );
}

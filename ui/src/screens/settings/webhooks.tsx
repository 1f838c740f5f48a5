// List of webhooks.

import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Pause, Play, Plus, Webhook as WebhookIcon } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { hasPermission } from "../../api/session";
import { changeWebhook, type Webhook, webhooksQuery } from "../../api/webhooks";
import { AdminNotice } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { OneTimeSecretDialog } from "../../components/one-time-secret";
import { PagedRows } from "../../components/paged-rows";
import { EmptyState } from "../../components/query-states";
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
      description="Signed event notifications to your servers, retried until delivered."
      action={
        admin && (
          <Button kind="primary" icon={Plus} onClick={() => setCreating(true)}>
            New webhook
          </Button>
        )
      }
    >
      {admin ? <Table /> : <AdminNotice feature="manage webhooks" />}
      {isCreating && (
        <WebhookForm
          onClose={() => setCreating(false)}
          onSaved={(created) => setSecret(created.secret ?? null)}
        />
      )}
      {secret && (
        <OneTimeSecretDialog
          title="Webhook created"
          label="Signing secret"
          text={secret}
          onClose={() => setSecret(null)}
        />
      )}
    </SettingsSection>
  );
}

function Table() {
  return (
    <PagedRows query={useInfiniteQuery(webhooksQuery)} noun="webhooks">
      {(webhooks) =>
        webhooks.length ? (
          <div className="table-wrap">
            <table className="table">
              <thead>
                <tr>
                  <th>URL</th>
                  <th className="only-large">Events</th>
                  <th>Status</th>
                  <th className="only-large">Updated</th>
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
              A webhook posts events to your server, following Standard Webhooks. Deliveries are
              logged and can be replayed.
            </p>
          </EmptyState>
        )
      }
    </PagedRows>
  );
}

function Row({ webhook }: { webhook: Webhook }) {
  return (
    <tr>
      <td className="name-cell">
        <Link className="bidi truncate" to={`/settings/webhooks/${webhook.id}`}>
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
  events.includes("*") ? "all" : events.join(", ");

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

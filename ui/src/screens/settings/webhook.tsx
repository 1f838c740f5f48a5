// One webhook and its delivery log.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ArrowLeft, Pencil, Send, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { hasPermission } from "../../api/session";
import { deleteWebhook, type Webhook, webhookQuery } from "../../api/webhooks";
import { AdminNotice } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { Deliveries } from "./deliveries";
import { SettingsSection } from "./settings-section";
import { WebhookForm } from "./webhook-form";
import { WebhookTestDialog } from "./webhook-test";
import { eventsLabel, PauseButton, WebhookStatus } from "./webhooks";

export default function WebhookPage() {
  const admin = hasPermission(useSession(), "tenant:admin");
  return admin ? <WebhookLoader /> : <AdminNotice feature="manage webhooks" />;
}

function WebhookLoader() {
  const { id = "" } = useParams();
  const [isDeleting, setDeleting] = useState(false);
  const query = useQuery({ ...webhookQuery(id), enabled: !isDeleting });
  return (
    <QueryResult query={query}>
      {(webhook) => (
        <WebhookDetails webhook={webhook} isDeleting={isDeleting} onDeleting={setDeleting} />
      )}
    </QueryResult>
  );
}

interface WebhookDetailsProps {
  webhook: Webhook;
  /** Pauses queries for the webhook while it is being deleted. */
  isDeleting: boolean;
  onDeleting: (isDeleting: boolean) => void;
}

function WebhookDetails({ webhook, isDeleting, onDeleting }: WebhookDetailsProps) {
  const [open, setOpen] = useState<"edit" | "delete" | "test" | null>(null);
  return (
    <>
      <Link className="row" to="/settings/webhooks">
        <ArrowLeft size={15} aria-hidden /> All webhooks
      </Link>
      <SettingsSection
        title={escapeText(webhook.url, 200)}
        description={
          <>
            <WebhookStatus active={webhook.active} /> Events: {eventsLabel(webhook)}
          </>
        }
        action={
          <div className="row wrap">
            <Button small icon={Send} onClick={() => setOpen("test")}>
              Send test
            </Button>
            <PauseButton webhook={webhook} />
            <Button small icon={Pencil} onClick={() => setOpen("edit")}>
              Edit
            </Button>
            <Button small kind="danger" icon={Trash2} onClick={() => setOpen("delete")}>
              Delete
            </Button>
          </div>
        }
      >
        {!isDeleting && <Deliveries id={webhook.id} />}
      </SettingsSection>
      {open === "edit" && (
        <WebhookForm
          webhook={webhook}
          onClose={() => setOpen(null)}
          onSaved={() => toast("Webhook saved")}
        />
      )}
      {open === "test" && <WebhookTestDialog id={webhook.id} onClose={() => setOpen(null)} />}
      {open === "delete" && (
        <DeleteDialog webhook={webhook} onClose={() => setOpen(null)} onDeleting={onDeleting} />
      )}
    </>
  );
}

interface DeleteDialogProps {
  webhook: Webhook;
  onClose: () => void;
  onDeleting: (isDeleting: boolean) => void;
}

function DeleteDialog({ webhook, onClose, onDeleting }: DeleteDialogProps) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => deleteWebhook(webhook.id),
    onMutate: () => onDeleting(true),
    onError: () => onDeleting(false),
    onSuccess: async () => {
      await navigate("/settings/webhooks");
      void queries.invalidateQueries({ queryKey: ["webhooks"], exact: true });
      toast("Webhook deleted");
    },
  });
  return (
    <Confirm
      title="Delete webhook?"
      action="Delete"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{escapeText(webhook.url, 120)}</strong> receives no more events, and its delivery
        log is deleted.
      </p>
    </Confirm>
  );
}

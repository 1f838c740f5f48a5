// One webhook, and the log of what was posted to it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ArrowLeft, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { may } from "../../api/session";
import { deleteWebhook, type Webhook, webhookQuery } from "../../api/webhooks";
import { useSession } from "../../frame/session-context";
import { Button } from "../../parts/button";
import { Confirm } from "../../parts/dialog";
import { plain } from "../../parts/hostile";
import { OnlyAdmins } from "../../parts/only-admins";
import { Shown } from "../../parts/states";
import { toast } from "../../parts/toast";
import { Deliveries } from "./deliveries";
import { Part } from "./part";
import { WebhookForm } from "./webhook-form";
import { eventsOf, PauseButton, WebhookStanding } from "./webhooks";

export default function WebhookPage() {
  const able = may(useSession(), "tenant:admin");
  return able ? <Found /> : <OnlyAdmins what="Telling other addresses" />;
}

function Found() {
  const { id = "" } = useParams();
  return <Shown query={useQuery(webhookQuery(id))}>{(found) => <One webhook={found} />}</Shown>;
}

function One({ webhook }: { webhook: Webhook }) {
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  return (
    <>
      <Link className="row" to="/settings/webhooks">
        <ArrowLeft size={15} aria-hidden /> All webhooks
      </Link>
      <Part
        title={plain(webhook.url, 200)}
        under={
          <>
            <WebhookStanding active={webhook.active} /> told of {eventsOf(webhook)}
          </>
        }
        action={
          <div className="row wrap">
            <PauseButton webhook={webhook} />
            <Button small icon={Pencil} onClick={() => setOpen("edit")}>
              Change
            </Button>
            <Button small kind="danger" icon={Trash2} onClick={() => setOpen("delete")}>
              Delete
            </Button>
          </div>
        }
      >
        <Deliveries id={webhook.id} />
      </Part>
      {open === "edit" && (
        <WebhookForm
          webhook={webhook}
          onClose={() => setOpen(null)}
          onSaved={() => toast("The webhook is changed.")}
        />
      )}
      {open === "delete" && <Deleting webhook={webhook} onClose={() => setOpen(null)} />}
    </>
  );
}

function Deleting({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const queries = useQueryClient();
  const go = useNavigate();
  const gone = useMutation({
    mutationFn: () => deleteWebhook(webhook.id),
    onSuccess: async () => {
      await go("/settings/webhooks");
      void queries.invalidateQueries({ queryKey: ["webhooks"], exact: true });
      toast("The webhook is deleted.");
    },
  });
  return (
    <Confirm
      title="Delete the webhook?"
      action="Delete"
      danger
      busy={gone.isPending}
      onConfirm={() => gone.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{plain(webhook.url, 120)}</strong> is told nothing more, and the log of its
        deliveries is gone.
      </p>
    </Confirm>
  );
}

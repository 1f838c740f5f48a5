// One webhook, and the log of what was posted to it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ArrowLeft, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { may } from "../../api/session";
import { deleteWebhook, type Webhook, webhookQuery } from "../../api/webhooks";
import { OnlyAdmins } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Shown } from "../../components/query-states";
import { toast } from "../../components/toast";
import { useSession } from "../../layout/session-context";
import { Deliveries } from "./deliveries";
import { Part } from "./settings-section";
import { WebhookForm } from "./webhook-form";
import { eventsOf, PauseButton, WebhookStanding } from "./webhooks";

export default function WebhookPage() {
  const able = may(useSession(), "tenant:admin");
  return able ? <Found /> : <OnlyAdmins what="Telling other addresses" />;
}

function Found() {
  const { id = "" } = useParams();
  const [isGoing, setGoing] = useState(false);
  const found = useQuery({ ...webhookQuery(id), enabled: !isGoing });
  return (
    <Shown query={found}>
      {(webhook) => <One webhook={webhook} isGoing={isGoing} onGoing={setGoing} />}
    </Shown>
  );
}

interface OneProps {
  webhook: Webhook;
  /** It is being deleted: nothing more is asked about it. */
  isGoing: boolean;
  onGoing: (isGoing: boolean) => void;
}

function One({ webhook, isGoing, onGoing }: OneProps) {
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
        {!isGoing && <Deliveries id={webhook.id} />}
      </Part>
      {open === "edit" && (
        <WebhookForm
          webhook={webhook}
          onClose={() => setOpen(null)}
          onSaved={() => toast("The webhook is changed.")}
        />
      )}
      {open === "delete" && (
        <Deleting webhook={webhook} onClose={() => setOpen(null)} onGoing={onGoing} />
      )}
    </>
  );
}

interface DeletingProps {
  webhook: Webhook;
  onClose: () => void;
  onGoing: (isGoing: boolean) => void;
}

function Deleting({ webhook, onClose, onGoing }: DeletingProps) {
  const queries = useQueryClient();
  const go = useNavigate();
  const gone = useMutation({
    mutationFn: () => deleteWebhook(webhook.id),
    onMutate: () => onGoing(true),
    onError: () => onGoing(false),
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

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { changeWebhook, createWebhook, EVENTS, type Webhook } from "../../api/webhooks";
import { CheckboxGroup } from "../../components/checkbox-group";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";

interface WebhookFormProps {
  webhook?: Webhook;
  onClose: () => void;
  onSaved: (webhook: Webhook) => void;
}

/** Telling an address of some events, or of all. */
export function WebhookForm({ webhook, onClose, onSaved }: WebhookFormProps) {
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [allEvents, setAllEvents] = useState(webhook ? webhook.events.includes("*") : true);
  const [selected, setSelected] = useState(webhook?.events.filter((event) => event !== "*") ?? []);
  const queries = useQueryClient();
  const events = allEvents ? ["*"] : selected;
  const save = useMutation({
    mutationFn: () =>
      webhook ? changeWebhook(webhook.id, { url, events }) : createWebhook(url, events),
    meta: { skipErrorToast: true },
    onSuccess: (saved) => {
      void queries.invalidateQueries({ queryKey: ["webhooks"] });
      onClose();
      onSaved(saved);
    },
  });
  return (
    <FormDialog
      title={webhook ? "Change the webhook" : "New webhook"}
      action={webhook ? "Save" : "Create"}
      busy={save.isPending}
      error={save.error}
      disabled={events.length === 0}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Field label="Address" hint="http or https, at a public address.">
        <input
          className="input mono"
          type="url"
          required
          value={url}
          onChange={(event) => setUrl(event.target.value)}
        />
      </Field>
      <label className="check">
        <input
          type="checkbox"
          checked={allEvents}
          onChange={(event) => setAllEvents(event.target.checked)}
        />
        <span>Everything, what comes to be told later included</span>
      </label>
      {!allEvents && (
        <CheckboxGroup
          legend="Events"
          options={EVENTS}
          selected={selected}
          onChange={setSelected}
        />
      )}
    </FormDialog>
  );
}

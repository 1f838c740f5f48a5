import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { changeWebhook, createWebhook, eventTypesQuery, type Webhook } from "../../api/webhooks";
import { CheckboxGroup } from "../../components/checkbox-group";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";

interface WebhookFormProps {
  webhook?: Webhook;
  onClose: () => void;
  onSaved: (webhook: Webhook) => void;
}

/** Creates or edits a webhook. */
export function WebhookForm({ webhook, onClose, onSaved }: WebhookFormProps) {
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [allEvents, setAllEvents] = useState(webhook ? webhook.events.includes("*") : true);
  const [selected, setSelected] = useState(webhook?.events.filter((event) => event !== "*") ?? []);
  const eventTypes = useQuery(eventTypesQuery);
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
      title={webhook ? "Edit webhook" : "New webhook"}
      action={webhook ? "Save" : "Create"}
      busy={save.isPending}
      error={save.error}
      disabled={events.length === 0}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Field label="URL" hint="http or https, publicly reachable.">
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
        <span>All events, including future ones</span>
      </label>
      {!allEvents && eventTypes.data && (
        <CheckboxGroup
          legend="Events"
          options={eventTypes.data}
          selected={selected}
          onChange={setSelected}
        />
      )}
    </FormDialog>
  );
}

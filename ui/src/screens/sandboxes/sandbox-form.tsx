// Creates or edits a sandbox.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import {
  createSandbox,
  PROVIDERS,
  patchSandbox,
  RUNTIMES,
  type Sandbox,
} from "../../api/sandboxes";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { toast } from "../../components/toast";
import { EnvVariables } from "./env-variables";
import { draftFromSandbox, patchFromDraft, type SandboxDraft } from "./sandbox-draft";
import { SandboxLimits } from "./sandbox-limits";

export const PERMISSION_MODES = {
  ask: "Writes and commands",
  edit: "Commands",
  bypass: "Never",
} as const;

export type UpdateDraft = (change: Partial<SandboxDraft>) => void;

interface SandboxFormProps {
  sandbox?: Sandbox;
  onClose: () => void;
  onSaved?: (sandbox: Sandbox) => void;
}

export function SandboxForm({ sandbox, onClose, onSaved }: SandboxFormProps) {
  const [draft, setDraft] = useState(() => draftFromSandbox(sandbox));
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: async () => {
      const patch = patchFromDraft(draft, sandbox);
      return sandbox ? patchSandbox(sandbox.sandboxId, patch) : createSandbox(patch);
    },
    meta: { skipErrorToast: true },
    onSuccess: (saved) => {
      void queries.invalidateQueries({ queryKey: ["sandboxes"] });
      toast(sandbox ? "Sandbox saved" : "Sandbox created");
      onClose();
      onSaved?.(saved);
    },
  });
  const update: UpdateDraft = (change) => setDraft((current) => ({ ...current, ...change }));
  return (
    <FormDialog
      title={sandbox ? "Edit sandbox" : "New sandbox"}
      action={sandbox ? "Save" : "Create"}
      busy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <NameFields draft={draft} update={update} />
      <RuntimeFields draft={draft} update={update} />
      <SandboxLimits draft={draft} update={update} />
      <EnvVariables variables={draft.variables} onChange={(variables) => update({ variables })} />
      <Field label="Options" hint="Provider-specific JSON.">
        <textarea
          className="input mono"
          value={draft.options}
          onChange={(event) => update({ options: event.target.value })}
        />
      </Field>
    </FormDialog>
  );
}

function NameFields({ draft, update }: { draft: SandboxDraft; update: UpdateDraft }) {
  return (
    <>
      <Field label="Name">
        <input
          className="input"
          required
          value={draft.name}
          onChange={(event) => update({ name: event.target.value })}
        />
      </Field>
      <Field label="Description">
        <input
          className="input"
          value={draft.description}
          onChange={(event) => update({ description: event.target.value })}
        />
      </Field>
    </>
  );
}

function RuntimeFields({ draft, update }: { draft: SandboxDraft; update: UpdateDraft }) {
  const toggle = (name: string, on: boolean) =>
    update({
      runtimes: RUNTIMES.filter((runtime) =>
        runtime === name ? on : draft.runtimes.includes(runtime),
      ),
    });
  return (
    <>
      <div className="columns">
        <Field label="Provider">
          <select
            className="input"
            value={draft.provider}
            onChange={(event) =>
              update({ provider: event.target.value as SandboxDraft["provider"] })
            }
          >
            {PROVIDERS.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </Field>
        <Field label="Approval required for">
          <select
            className="input"
            value={draft.permissionMode}
            onChange={(event) =>
              update({ permissionMode: event.target.value as SandboxDraft["permissionMode"] })
            }
          >
            {Object.entries(PERMISSION_MODES).map(([mode, description]) => (
              <option key={mode} value={mode}>
                {description} ({mode})
              </option>
            ))}
          </select>
        </Field>
      </div>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.network}
          onChange={(event) => update({ network: event.target.checked })}
        />
        <span>Allow network access</span>
      </label>
      <fieldset className="checkbox-group">
        <legend className="label">Runtimes (none selected: all)</legend>
        <div className="row wrap">
          {RUNTIMES.map((name) => (
            <label key={name} className="check">
              <input
                type="checkbox"
                checked={draft.runtimes.includes(name)}
                onChange={(event) => toggle(name, event.target.checked)}
              />
              <code>{name}</code>
            </label>
          ))}
        </div>
      </fieldset>
    </>
  );
}

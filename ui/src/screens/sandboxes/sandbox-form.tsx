// Describing a sandbox, or changing how it is described.

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
  ask: "Before writing and commands",
  edit: "Before commands",
  bypass: "Nobody is asked",
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
      toast(sandbox ? "The sandbox is changed." : "The sandbox is there.");
      onClose();
      onSaved?.(saved);
    },
  });
  const update: UpdateDraft = (change) => setDraft((current) => ({ ...current, ...change }));
  return (
    <FormDialog
      title={sandbox ? "Change the sandbox" : "New sandbox"}
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
      <Field label="Options" hint="JSON that only this provider understands.">
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
        <Field label="A person is asked">
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
        <span>Commands reach the network</span>
      </label>
      <fieldset className="choices">
        <legend className="label">Runtimes (all, where none is chosen)</legend>
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

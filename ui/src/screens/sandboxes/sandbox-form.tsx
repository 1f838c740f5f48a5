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
import { Variables } from "./env-variables";
import { draftOf, patchOf, type SandboxDraft } from "./sandbox-draft";
import { SandboxLimits } from "./sandbox-limits";

export const MODES = {
  ask: "Before writing and commands",
  edit: "Before commands",
  bypass: "Nobody is asked",
} as const;

export type Fill = (change: Partial<SandboxDraft>) => void;

interface SandboxFormProps {
  sandbox?: Sandbox;
  onClose: () => void;
  onSaved?: (sandbox: Sandbox) => void;
}

export function SandboxForm({ sandbox, onClose, onSaved }: SandboxFormProps) {
  const [draft, setDraft] = useState(() => draftOf(sandbox));
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: async () => {
      const patch = patchOf(draft, sandbox);
      return sandbox ? patchSandbox(sandbox.sandboxId, patch) : createSandbox(patch);
    },
    meta: { quiet: true },
    onSuccess: (saved) => {
      void queries.invalidateQueries({ queryKey: ["sandboxes"] });
      toast(sandbox ? "The sandbox is changed." : "The sandbox is there.");
      onClose();
      onSaved?.(saved);
    },
  });
  const fill: Fill = (change) => setDraft((was) => ({ ...was, ...change }));
  return (
    <FormDialog
      title={sandbox ? "Change the sandbox" : "New sandbox"}
      action={sandbox ? "Save" : "Create"}
      busy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <Naming draft={draft} fill={fill} />
      <Running draft={draft} fill={fill} />
      <SandboxLimits draft={draft} fill={fill} />
      <Variables variables={draft.variables} onChange={(variables) => fill({ variables })} />
      <Field label="Options" hint="JSON that only this provider understands.">
        <textarea
          className="input mono"
          value={draft.options}
          onChange={(event) => fill({ options: event.target.value })}
        />
      </Field>
    </FormDialog>
  );
}

function Naming({ draft, fill }: { draft: SandboxDraft; fill: Fill }) {
  return (
    <>
      <Field label="Name">
        <input
          className="input"
          required
          value={draft.name}
          onChange={(event) => fill({ name: event.target.value })}
        />
      </Field>
      <Field label="Description">
        <input
          className="input"
          value={draft.description}
          onChange={(event) => fill({ description: event.target.value })}
        />
      </Field>
    </>
  );
}

function Running({ draft, fill }: { draft: SandboxDraft; fill: Fill }) {
  const toggle = (name: string, on: boolean) =>
    fill({
      runtimes: RUNTIMES.filter((one) => (one === name ? on : draft.runtimes.includes(one))),
    });
  return (
    <>
      <div className="columns">
        <Field label="Provider">
          <select
            className="input"
            value={draft.provider}
            onChange={(event) => fill({ provider: event.target.value as SandboxDraft["provider"] })}
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
              fill({ permissionMode: event.target.value as SandboxDraft["permissionMode"] })
            }
          >
            {Object.entries(MODES).map(([mode, says]) => (
              <option key={mode} value={mode}>
                {says} ({mode})
              </option>
            ))}
          </select>
        </Field>
      </div>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.network}
          onChange={(event) => fill({ network: event.target.checked })}
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

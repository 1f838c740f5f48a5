// Creates an API key.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { agentRecordsQuery } from "../../api/agent-records";
import {
  type CreatedKey,
  createKey,
  type NewKey,
  PERMISSIONS,
  type Permission,
} from "../../api/keys";
import { isAdmin } from "../../api/session";
import { workspacesQuery } from "../../api/workspaces";
import { CheckboxGroup } from "../../components/checkbox-group";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { useSession } from "../../layout/session-context";

interface KeyDraft {
  name: string;
  kind: NewKey["kind"];
  agentId: string;
  workspace: string;
  scopes: Permission[];
  days: string;
}

type UpdateDraft = (change: Partial<KeyDraft>) => void;

function newKeyFromDraft({ name, kind, agentId, workspace, scopes, days }: KeyDraft): NewKey {
  const expiresAt = days && new Date(Date.now() + Number(days) * 86_400_000).toISOString();
  return {
    name: name.trim(),
    kind,
    ...(kind === "agent" && { agentId }),
    ...(kind !== "agent" && workspace && { workspace }),
    ...(scopes.length && { scopes }),
    ...(expiresAt && { expiresAt }),
  };
}

const EMPTY_DRAFT = { name: "", agentId: "", workspace: "", scopes: [], days: "" };

interface KeyFormProps {
  onClose: () => void;
  onCreated: (key: CreatedKey) => void;
}

export function KeyForm({ onClose, onCreated }: KeyFormProps) {
  const session = useSession();
  const [draft, setDraft] = useState<KeyDraft>({ ...EMPTY_DRAFT, kind: "person" });
  const queries = useQueryClient();
  const create = useMutation({
    mutationFn: () => createKey(newKeyFromDraft(draft)),
    meta: { skipErrorToast: true },
    onSuccess: (created) => {
      void queries.invalidateQueries({ queryKey: ["keys"] });
      onClose();
      onCreated(created);
    },
  });
  const update: UpdateDraft = (change) => setDraft((current) => ({ ...current, ...change }));
  const isBound = draft.kind === "agent" || draft.workspace !== "";
  return (
    <FormDialog
      title="Create API key"
      action="Create"
      busy={create.isPending}
      error={create.error}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <Field label="Name" hint="For example the program that uses it.">
        <input
          className="input"
          required
          value={draft.name}
          onChange={(event) => update({ name: event.target.value })}
        />
      </Field>
      {isAdmin(session) && <HolderFields draft={draft} update={update} />}
      <Field
        label="Expires after (days)"
        hint={
          session.expiresAt
            ? "At most as long as this session. For a longer one, use the owner’s token."
            : "Empty: never."
        }
      >
        <input
          className="input"
          type="number"
          min={1}
          max={36500}
          value={draft.days}
          onChange={(event) => update({ days: event.target.value })}
        />
      </Field>
      <CheckboxGroup
        legend="Permissions (none selected: all of the holder’s)"
        options={PERMISSIONS}
        selected={draft.scopes}
        disabled={(name) =>
          !session.permissions.includes(name) || (isBound && name.startsWith("tenant:"))
        }
        onChange={(scopes) => update({ scopes })}
      />
    </FormDialog>
  );
}

function HolderFields({ draft, update }: { draft: KeyDraft; update: UpdateDraft }) {
  return (
    <>
      <div className="columns">
        <Field label="Kind">
          <select
            className="input"
            value={draft.kind}
            onChange={(event) => update({ kind: event.target.value as KeyDraft["kind"] })}
          >
            <option value="person">person (you)</option>
            <option value="service">service</option>
            <option value="agent">agent</option>
          </select>
        </Field>
        {draft.kind === "agent" && <AgentField draft={draft} update={update} />}
      </div>
      {draft.kind !== "agent" && <WorkspaceField draft={draft} update={update} />}
    </>
  );
}

function AgentField({ draft, update }: { draft: KeyDraft; update: UpdateDraft }) {
  const agents = useQuery(agentRecordsQuery);
  return (
    <div>
      <Field label="Agent" hint="ID or slug.">
        <input
          className="input"
          required
          list="agents-to-choose"
          value={draft.agentId}
          onChange={(event) => update({ agentId: event.target.value })}
        />
      </Field>
      <datalist id="agents-to-choose">
        {agents.data?.slice(0, 500).map(({ id, slug, name }) => (
          <option key={id} value={slug}>
            {escapeText(name, 60)}
          </option>
        ))}
      </datalist>
    </div>
  );
}

function WorkspaceField({ draft, update }: { draft: KeyDraft; update: UpdateDraft }) {
  const workspaces = useQuery(workspacesQuery);
  return (
    <Field label="Restrict to workspace">
      <select
        className="input"
        value={draft.workspace}
        onChange={(event) => update({ workspace: event.target.value, scopes: [] })}
      >
        <option value="">No restriction</option>
        {workspaces.data?.map(({ workspaceId, name }) => (
          <option key={workspaceId} value={workspaceId}>
            {escapeText(name, 60)}
          </option>
        ))}
      </select>
    </Field>
  );
}

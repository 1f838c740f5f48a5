// Making a key: whose, for what, confined to what.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { agentRecordsQuery } from "../../api/agent-records";
import {
  type CreatedKey,
  makeKey,
  type NewKey,
  PERMISSIONS,
  type Permission,
} from "../../api/keys";
import { peopleQuery } from "../../api/people";
import { isAdmin } from "../../api/session";
import { workspacesQuery } from "../../api/workspaces";
import { Choices } from "../../components/checkbox-group";
import { plain } from "../../components/escape-text";
import { Field } from "../../components/field";
import { FormDialog } from "../../components/form-dialog";
import { useSession } from "../../layout/session-context";

interface Draft {
  name: string;
  kind: NewKey["kind"];
  personId: string;
  agentId: string;
  workspace: string;
  scopes: Permission[];
  days: string;
}

type Fill = (change: Partial<Draft>) => void;

function newKeyOf({ name, kind, personId, agentId, workspace, scopes, days }: Draft): NewKey {
  const until = days && new Date(Date.now() + Number(days) * 86_400_000).toISOString();
  return {
    name: name.trim(),
    kind,
    ...(kind === "person" && personId && { personId }),
    ...(kind === "agent" && { agentId }),
    ...(kind !== "agent" && workspace && { workspace }),
    ...(scopes.length && { scopes }),
    ...(until && { expiresAt: until }),
  };
}

const BLANK = { name: "", agentId: "", workspace: "", scopes: [], days: "" };

interface KeyFormProps {
  onClose: () => void;
  onMade: (key: CreatedKey) => void;
}

export function KeyForm({ onClose, onMade }: KeyFormProps) {
  const session = useSession();
  const [draft, setDraft] = useState<Draft>({
    ...BLANK,
    kind: "person",
    personId: session.person?.id ?? "",
  });
  const queries = useQueryClient();
  const make = useMutation({
    mutationFn: () => makeKey(newKeyOf(draft)),
    meta: { quiet: true },
    onSuccess: (made) => {
      void queries.invalidateQueries({ queryKey: ["keys"] });
      onClose();
      onMade(made);
    },
  });
  const fill: Fill = (change) => setDraft((was) => ({ ...was, ...change }));
  const bound = draft.kind === "agent" || draft.workspace !== "";
  return (
    <FormDialog
      title="Make a key"
      action="Make"
      busy={make.isPending}
      error={make.error}
      onSubmit={() => make.mutate()}
      onClose={onClose}
    >
      <Field label="Name" hint="What it is for, to know it by later.">
        <input
          className="input"
          required
          value={draft.name}
          onChange={(event) => fill({ name: event.target.value })}
        />
      </Field>
      {isAdmin(session) && <Holder draft={draft} fill={fill} />}
      <Field label="Days it is good for" hint="Without an end where left empty.">
        <input
          className="input"
          type="number"
          min={1}
          max={36500}
          value={draft.days}
          onChange={(event) => fill({ days: event.target.value })}
        />
      </Field>
      <Choices
        legend="What it may do (all that its holder may, where none is chosen)"
        of={PERMISSIONS}
        chosen={draft.scopes}
        disabled={(name) =>
          !session.permissions.includes(name) || (bound && name.startsWith("tenant:"))
        }
        onChange={(scopes) => fill({ scopes })}
      />
    </FormDialog>
  );
}

function Holder({ draft, fill }: { draft: Draft; fill: Fill }) {
  return (
    <>
      <div className="columns">
        <Field label="Kind">
          <select
            className="input"
            value={draft.kind}
            onChange={(event) => fill({ kind: event.target.value as Draft["kind"] })}
          >
            <option value="person">person</option>
            <option value="service">service</option>
            <option value="agent">agent</option>
          </select>
        </Field>
        {draft.kind === "person" && <PersonChoice draft={draft} fill={fill} />}
        {draft.kind === "agent" && <AgentChoice draft={draft} fill={fill} />}
      </div>
      {draft.kind !== "agent" && <WorkspaceChoice draft={draft} fill={fill} />}
    </>
  );
}

function PersonChoice({ draft, fill }: { draft: Draft; fill: Fill }) {
  const people = useQuery(peopleQuery);
  return (
    <Field label="Person">
      <select
        className="input"
        value={draft.personId}
        onChange={(event) => fill({ personId: event.target.value })}
      >
        {people.data?.map(({ id, name }) => (
          <option key={id} value={id}>
            {plain(name, 60)}
          </option>
        ))}
      </select>
    </Field>
  );
}

function AgentChoice({ draft, fill }: { draft: Draft; fill: Fill }) {
  const agents = useQuery(agentRecordsQuery);
  return (
    <div>
      <Field label="Agent" hint="An id or a slug.">
        <input
          className="input"
          required
          list="agents-to-choose"
          value={draft.agentId}
          onChange={(event) => fill({ agentId: event.target.value })}
        />
      </Field>
      <datalist id="agents-to-choose">
        {agents.data?.slice(0, 500).map(({ id, slug, name }) => (
          <option key={id} value={slug}>
            {plain(name, 60)}
          </option>
        ))}
      </datalist>
    </div>
  );
}

function WorkspaceChoice({ draft, fill }: { draft: Draft; fill: Fill }) {
  const workspaces = useQuery(workspacesQuery);
  return (
    <Field label="Confined to a workspace">
      <select
        className="input"
        value={draft.workspace}
        onChange={(event) => fill({ workspace: event.target.value, scopes: [] })}
      >
        <option value="">none: it reaches all that its holder does</option>
        {workspaces.data?.map(({ workspaceId, name }) => (
          <option key={workspaceId} value={workspaceId}>
            {plain(name, 60)}
          </option>
        ))}
      </select>
    </Field>
  );
}

import { useState } from "react";
import { Link } from "react-router";
import type { Agent, AgentPatch } from "../../api/agents";
import { fileUrl } from "../../api/files";
import { Field } from "../../components/field";
import { isSlug } from "../../components/slug";
import { PersonSelect, TemplateSelect } from "./selects";
import { SettingsCard } from "./settings-card";
import { usePatchAgent } from "./use-patch";

/** Unsaved changes over the agent's fields. */
function useDraft(agent: Agent, successText: string) {
  const [draft, setDraft] = useState<AgentPatch>({});
  const patch = usePatchAgent(agent, successText, () => setDraft({}));
  const dirty = Object.entries(draft).some(
    ([key, value]) => value !== agent[key as keyof AgentPatch],
  );
  const card = {
    dirty,
    busy: patch.isPending,
    error: patch.error,
    onSave: () => patch.mutate(draft),
    onReset: () => setDraft({}),
  };
  const set = (fields: AgentPatch) => setDraft({ ...draft, ...fields });
  return { values: { ...agent, ...draft }, set, card, dirty };
}

const fileLink = (agent: Agent, path: string) => (
  <Link to={fileUrl({ kind: "agent", id: agent.id }, path)}>{path}</Link>
);

export function NameSettings({ agent }: { agent: Agent }) {
  const { values, set, card } = useDraft(agent, "Name saved");
  const description = (
    <>
      A new name also updates the Name line of {fileLink(agent, "IDENTITY.md")}. An inherited file
      that uses the name placeholder stays inherited.
    </>
  );
  const slugError = isSlug(values.slug)
    ? null
    : "Use lower-case letters, digits and hyphens (max. 63).";
  return (
    <SettingsCard title="Name" description={description} {...card} canSave={!slugError}>
      <Field label="Name">
        <input
          className="input"
          value={values.name}
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      <Field
        label="Slug"
        hint="Used in URLs and commands. Links with the old slug stop working."
        error={slugError}
      >
        <input
          className="input mono"
          value={values.slug}
          spellCheck={false}
          onChange={(event) => set({ slug: event.target.value })}
        />
      </Field>
    </SettingsCard>
  );
}

export function TemplateSettings({ agent }: { agent: Agent }) {
  const { values, set, card } = useDraft(agent, "Template changed");
  return (
    <SettingsCard
      title="Template"
      description="Live files switch to the new template at once. Pinned files stay as reviewed; the new template's versions need review."
      {...card}
    >
      <TemplateSelect
        value={values.templateId ?? ""}
        onChange={(id) => set({ templateId: id || null })}
      />
    </SettingsCard>
  );
}

export function HumanSettings({ agent }: { agent: Agent }) {
  const { values, set, card } = useDraft(agent, "Human changed");
  const description = (
    <>
      Changing the human rewrites {fileLink(agent, "USER.md")} with their name, email, title,
      timezone and pronouns. The old content is replaced.
    </>
  );
  return (
    <SettingsCard title="Human" description={description} {...card}>
      <PersonSelect
        label="Works for"
        emptyLabel="None"
        value={values.humanPairId ?? ""}
        onChange={(id) => set({ humanPairId: id || null })}
      />
    </SettingsCard>
  );
}

export function SharingSettings({ agent }: { agent: Agent }) {
  const { values, set, card } = useDraft(agent, "Sharing saved");
  return (
    <SettingsCard
      title="Sharing"
      description="A person's private agents share that person's items. A shared agent has its own items."
      {...card}
    >
      <label className="check">
        <input
          type="checkbox"
          checked={values.isShared}
          onChange={(event) => set({ isShared: event.target.checked })}
        />
        Shared: works for several people
      </label>
      <PersonSelect
        label="Owner"
        emptyLabel="None"
        hint="Reviews of this agent appear in the owner's inbox."
        value={values.ownerId ?? ""}
        onChange={(id) => set({ ownerId: id || null })}
      />
    </SettingsCard>
  );
}

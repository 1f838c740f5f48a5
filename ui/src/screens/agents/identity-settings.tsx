import { useState } from "react";
import { Link } from "react-router";
import type { Agent, AgentPatch } from "../../api/agents";
import { fileUrl } from "../../api/files";
import { Field } from "../../components/field";
import { isSlug } from "../../components/slug";
import { PersonSelect, TemplateSelect } from "./selects";
import { SettingsCard } from "./settings-card";
import { usePatchAgent } from "./use-patch";

/** What was touched of some fields, over what the agent says. */
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
  const { values, set, card } = useDraft(agent, "The name is saved.");
  const description = (
    <>
      A new name also rewrites the Name line of {fileLink(agent, "IDENTITY.md")}, and nothing else
      in it. Where the file is inherited and shows the name by its placeholder, it stays inherited.
    </>
  );
  const slugError = isSlug(values.slug) ? null : "Small letters, digits and dashes, at most 63.";
  return (
    <SettingsCard title="Name" description={description} {...card} dirty={card.dirty && !slugError}>
      <Field label="Name">
        <input
          className="input"
          value={values.name}
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      <Field
        label="Slug"
        hint="Its name in addresses. Links that use the old one stop working."
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
  const { values, set, card } = useDraft(agent, "The agent follows another template.");
  return (
    <SettingsCard
      title="Template"
      description="Live files follow the new template at once. Pinned files stay as they were reviewed; those of the new template are offered for review."
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
  const { values, set, card } = useDraft(agent, "The agent works for somebody else, and knows it.");
  const description = (
    <>
      Pairing it with another human rewrites {fileLink(agent, "USER.md")} in the same step, from the
      template or the defaults: name, e-mail, title, timezone and pronouns of the new one. Nothing
      of the old file is kept.
    </>
  );
  return (
    <SettingsCard title="Human" description={description} {...card}>
      <PersonSelect
        label="Works for"
        emptyLabel="Nobody in particular"
        value={values.humanPairId ?? ""}
        onChange={(id) => set({ humanPairId: id || null })}
      />
    </SettingsCard>
  );
}

export function SharingSettings({ agent }: { agent: Agent }) {
  const { values, set, card } = useDraft(agent, "Who it belongs to is saved.");
  return (
    <SettingsCard
      title="Sharing"
      description="The private agents of a person share that person's items. A shared agent has items of its own."
      {...card}
    >
      <label className="check">
        <input
          type="checkbox"
          checked={values.isShared}
          onChange={(event) => set({ isShared: event.target.checked })}
        />
        Shared: it works for several people
      </label>
      <PersonSelect
        label="Owner"
        emptyLabel="Nobody"
        hint="The person to whom it belongs. What waits for its review is in their inbox."
        value={values.ownerId ?? ""}
        onChange={(id) => set({ ownerId: id || null })}
      />
    </SettingsCard>
  );
}

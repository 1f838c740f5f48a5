import { useState } from "react";
import type { Agent } from "../../api/agents";
import { Field } from "../../components/field";
import { Attachments, SandboxSelect } from "./attachments";
import {
  configAttachments,
  configLines,
  configObject,
  configText,
  mergeConfig,
  otherConfig,
  parseOtherConfig,
  splitLines,
} from "./config";
import { SettingsCard } from "./settings-card";
import { usePatchAgent } from "./use-patch";

type Config = Record<string, unknown>;

/** Unsaved config changes over the agent's config. */
function useConfigDraft(agent: Agent) {
  const [draft, setDraft] = useState<Config>({});
  const patch = usePatchAgent(agent, "Config saved", () => setDraft({}));
  const card = {
    dirty: Object.keys(draft).length > 0,
    busy: patch.isPending,
    error: patch.error,
    onSave: () => patch.mutate({ config: mergeConfig(agent.config, draft) }),
    onReset: () => setDraft({}),
  };
  const values: Config = { ...agent.config, ...draft };
  return { values, card, patch, set: (patch: Config) => setDraft({ ...draft, ...patch }) };
}

const TIMEZONES = Intl.supportedValuesOf("timeZone");

export function RuntimeSettings({ agent }: { agent: Agent }) {
  const { values, set, card } = useConfigDraft(agent);
  return (
    <SettingsCard title="Runtime" {...card}>
      <div className="field-pair">
        <Field label="Timezone" hint="Dates of its notes; UTC if empty.">
          <input
            className="input"
            list="zones"
            value={configText(values, "timezone")}
            placeholder="Europe/Paris"
            onChange={(event) => set({ timezone: event.target.value })}
          />
        </Field>
        <Field label="Model" hint="Passed to the runtime. Carrel does not call models.">
          <input
            className="input"
            value={configText(values, "model")}
            onChange={(event) => set({ model: event.target.value })}
          />
        </Field>
      </div>
      <datalist id="zones">
        {TIMEZONES.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      <LinesField
        name="Allowed tools"
        hint={TOOLS_HINT}
        configKey="allowedTools"
        values={values}
        set={set}
      />
      <LinesField
        name="Allowed delegates"
        hint={DELEGATES_HINT}
        configKey="allowedDelegates"
        values={values}
        set={set}
      />
      <LinesField
        name="Extra documents"
        hint={EXTRA_DOCS_HINT}
        configKey="extraDocs"
        values={values}
        set={set}
      />
    </SettingsCard>
  );
}

const TOOLS_HINT = "One name or prefix* per line. Empty allows all tools.";
const DELEGATES_HINT = "Agent slugs, one per line.";
const EXTRA_DOCS_HINT = "File paths to append to the prompt, one per line.";

interface ConfigFieldProps {
  values: Config;
  set: (patch: Config) => void;
}

function LinesField({
  name,
  hint,
  configKey,
  values,
  set,
}: ConfigFieldProps & { name: string; hint: string; configKey: string }) {
  const [typed, setTyped] = useState<string | null>(null);
  const saved = configLines(values, configKey);
  const text = typed !== null && splitLines(typed).join("\n") === saved ? typed : saved;
  return (
    <Field label={name} hint={hint}>
      <textarea
        className="input mono"
        rows={3}
        spellCheck={false}
        value={text}
        onChange={(event) => {
          setTyped(event.target.value);
          set({ [configKey]: splitLines(event.target.value) });
        }}
      />
    </Field>
  );
}

export function SandboxSettings({ agent }: { agent: Agent }) {
  const { values, set, card } = useConfigDraft(agent);
  return (
    <SettingsCard
      title="Sandbox and workspaces"
      description="Shared workspaces and the sandbox used in each. Without a sandbox a workspace is read-only."
      {...card}
    >
      <SandboxSelect
        label="Sandbox"
        value={configText(values, "sandbox")}
        none="None"
        onChange={(sandbox) => set({ sandbox })}
      />
      <Attachments
        attached={configAttachments(values)}
        onChange={(workspaces) => set({ workspaces })}
      />
    </SettingsCard>
  );
}

export function DreamingSettings({ agent }: { agent: Agent }) {
  const { values, set, card } = useConfigDraft(agent);
  const dreaming = configObject(values, "dreaming");
  const git = configObject(values, "workspaceGit");
  const setDreaming = (patch: Config) => set({ dreaming: { ...dreaming, ...patch } });
  const hours = Number(dreaming["intervalSecs"] ?? 86_400) / 3600;
  return (
    <SettingsCard title="Dreaming and git" {...card}>
      <Checkbox
        checked={dreaming["enabled"] === true}
        onChange={(enabled) => setDreaming({ enabled })}
      >
        Dreaming: promote frequently recalled memories to MEMORY.md
      </Checkbox>
      <Checkbox
        checked={dreaming["review"] === true}
        onChange={(review) => setDreaming({ review })}
      >
        Require review before dreams are applied
      </Checkbox>
      <Field label="Hours between dreams">
        <input
          className="input short"
          type="number"
          min={1}
          step="any"
          value={hours}
          onChange={(event) =>
            setDreaming({ intervalSecs: Math.round(event.target.valueAsNumber * 3600) || 3600 })
          }
        />
      </Field>
      <Checkbox
        checked={git["enabled"] === true}
        onChange={(enabled) => set({ workspaceGit: { ...git, enabled } })}
      >
        Git: serve the file history as a repository
      </Checkbox>
    </SettingsCard>
  );
}

interface CheckboxProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: string;
}

const Checkbox = ({ checked, onChange, children }: CheckboxProps) => (
  <label className="check">
    <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
    {children}
  </label>
);

export function OtherConfigSettings({ agent }: { agent: Agent }) {
  const saved = JSON.stringify(otherConfig(agent.config), null, 2);
  const [typed, setTyped] = useState<string | null>(null);
  const patch = usePatchAgent(agent, "Config saved", () => setTyped(null));
  const parsed = parseOtherConfig(typed ?? saved);
  const save = () => {
    if (!("config" in parsed)) return;
    const removed = Object.fromEntries(
      Object.keys(otherConfig(agent.config)).map((key) => [key, null]),
    );
    patch.mutate({ config: mergeConfig(agent.config, { ...removed, ...parsed.config }) });
  };
  return (
    <SettingsCard
      title="Other config"
      description="Other keys, used by Carrel (promptChars, fileChars, skillsChars) or by your runtime."
      dirty={typed !== null && typed !== saved}
      canSave={"config" in parsed}
      busy={patch.isPending}
      error={patch.error}
      onSave={save}
      onReset={() => setTyped(null)}
    >
      <Field label="JSON" error={"error" in parsed ? parsed.error : null}>
        <textarea
          className="input mono"
          rows={6}
          spellCheck={false}
          value={typed ?? saved}
          onChange={(event) => setTyped(event.target.value)}
        />
      </Field>
    </SettingsCard>
  );
}

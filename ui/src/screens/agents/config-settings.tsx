import { useState } from "react";
import type { Agent } from "../../api/agents";
import { Field } from "../../components/field";
import { Attachments, SandboxChoice } from "./attachments";
import {
  attachedIn,
  changed,
  linesIn,
  linesOf,
  objectIn,
  parsedRest,
  restOf,
  textIn,
} from "./config";
import { SettingsCard } from "./settings-card";
import { usePatch } from "./use-patch";

type Config = Record<string, unknown>;

/** What was touched of a config, over what the agent says. */
function useConfigDraft(agent: Agent) {
  const [draft, setDraft] = useState<Config>({});
  const patch = usePatch(agent, "The config is saved.", () => setDraft({}));
  const card = {
    dirty: Object.keys(draft).length > 0,
    busy: patch.isPending,
    error: patch.error,
    onSave: () => patch.mutate({ config: changed(agent.config, draft) }),
    onReset: () => setDraft({}),
  };
  const now: Config = { ...agent.config, ...draft };
  return { now, card, patch, set: (some: Config) => setDraft({ ...draft, ...some }) };
}

const ZONES = Intl.supportedValuesOf("timeZone");

export function RuntimeSettings({ agent }: { agent: Agent }) {
  const { now, set, card } = useConfigDraft(agent);
  return (
    <SettingsCard title="Runtime" {...card}>
      <div className="field-pair">
        <Field label="Timezone" hint="The days of its notes are those of this place; else UTC.">
          <input
            className="input"
            list="zones"
            value={textIn(now, "timezone")}
            placeholder="Europe/Paris"
            onChange={(event) => set({ timezone: event.target.value })}
          />
        </Field>
        <Field label="Model" hint="Handed on to the runtime; Carrel calls none.">
          <input
            className="input"
            value={textIn(now, "model")}
            onChange={(event) => set({ model: event.target.value })}
          />
        </Field>
      </div>
      <datalist id="zones">
        {ZONES.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      <Lines name="Allowed tools" hint={TOOLS} at="allowedTools" now={now} set={set} />
      <Lines name="Allowed delegates" hint={PEERS} at="allowedDelegates" now={now} set={set} />
      <Lines name="Extra documents" hint={EXTRA} at="extraDocs" now={now} set={set} />
    </SettingsCard>
  );
}

const TOOLS = "A name, or a beginning with a star, on each line. None allows all.";
const PEERS = "Slugs of the agents that it may hand work to, one on each line.";
const EXTRA = "Paths of files that the prompt ends with, one on each line.";

interface Edited {
  now: Config;
  set: (some: Config) => void;
}

function Lines({ name, hint, at, now, set }: Edited & { name: string; hint: string; at: string }) {
  const [typed, setTyped] = useState<string | null>(null);
  const said = linesIn(now, at);
  const shown = typed !== null && linesOf(typed).join("\n") === said ? typed : said;
  return (
    <Field label={name} hint={hint}>
      <textarea
        className="input mono"
        rows={3}
        spellCheck={false}
        value={shown}
        onChange={(event) => {
          setTyped(event.target.value);
          set({ [at]: linesOf(event.target.value) });
        }}
      />
    </Field>
  );
}

export function HandSettings({ agent }: { agent: Agent }) {
  const { now, set, card } = useConfigDraft(agent);
  return (
    <SettingsCard
      title="Sandbox and workspaces"
      under="The shared workspaces that it reaches, each through a sandbox. Without one a workspace is read-only."
      {...card}
    >
      <SandboxChoice
        label="Sandbox"
        value={textIn(now, "sandbox")}
        none="None"
        onChange={(sandbox) => set({ sandbox })}
      />
      <Attachments attached={attachedIn(now)} onChange={(workspaces) => set({ workspaces })} />
    </SettingsCard>
  );
}

export function HabitSettings({ agent }: { agent: Agent }) {
  const { now, set, card } = useConfigDraft(agent);
  const dreaming = objectIn(now, "dreaming");
  const git = objectIn(now, "workspaceGit");
  const dream = (some: Config) => set({ dreaming: { ...dreaming, ...some } });
  const hours = Number(dreaming["intervalSecs"] ?? 86_400) / 3600;
  return (
    <SettingsCard title="Dreaming and git" {...card}>
      <Check on={dreaming["enabled"] === true} onChange={(enabled) => dream({ enabled })}>
        Dreams: what it recalls often is promoted to MEMORY.md
      </Check>
      <Check on={dreaming["review"] === true} onChange={(review) => dream({ review })}>
        A person looks at a dream before it lands
      </Check>
      <Field label="Hours between dreams">
        <input
          className="input short"
          type="number"
          min={1}
          step="any"
          value={hours}
          onChange={(event) =>
            dream({ intervalSecs: Math.round(event.target.valueAsNumber * 3600) || 3600 })
          }
        />
      </Field>
      <Check
        on={git["enabled"] === true}
        onChange={(enabled) => set({ workspaceGit: { ...git, enabled } })}
      >
        Git: its whole history is a repository that can be cloned
      </Check>
    </SettingsCard>
  );
}

interface CheckProps {
  on: boolean;
  onChange: (on: boolean) => void;
  children: string;
}

const Check = ({ on, onChange, children }: CheckProps) => (
  <label className="check">
    <input type="checkbox" checked={on} onChange={(event) => onChange(event.target.checked)} />
    {children}
  </label>
);

export function RestSettings({ agent }: { agent: Agent }) {
  const said = JSON.stringify(restOf(agent.config), null, 2);
  const [typed, setTyped] = useState<string | null>(null);
  const patch = usePatch(agent, "The config is saved.", () => setTyped(null));
  const parsed = parsedRest(typed ?? said);
  const save = () => {
    if (!("rest" in parsed)) return;
    const gone = Object.fromEntries(Object.keys(restOf(agent.config)).map((key) => [key, null]));
    patch.mutate({ config: changed(agent.config, { ...gone, ...parsed.rest }) });
  };
  return (
    <SettingsCard
      title="Other config"
      under="Whatever else is kept with the agent, for Carrel (promptChars, fileChars) or for your runtime."
      dirty={typed !== null && typed !== said && "rest" in parsed}
      busy={patch.isPending}
      error={patch.error}
      onSave={save}
      onReset={() => setTyped(null)}
    >
      <Field label="JSON" wrong={"wrong" in parsed ? parsed.wrong : null}>
        <textarea
          className="input mono"
          rows={6}
          spellCheck={false}
          value={typed ?? said}
          onChange={(event) => setTyped(event.target.value)}
        />
      </Field>
    </SettingsCard>
  );
}

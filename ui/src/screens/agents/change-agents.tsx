// Changes many agents, after a dry run has shown what that does.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type AgentChange, type AgentOutcomes, changeAgents } from "../../api/agents";
import { toSentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import { PersonPicker, TemplatePicker } from "../../components/record-picker";
import { toast } from "../../components/toast";

export type Action = "template" | "human" | "tags" | "delete";

const TITLES: Record<Action, string> = {
  template: "Move to another template",
  human: "Pair with a person",
  tags: "Change tags",
  delete: "Delete agents",
};
const MAX_NAMED = 20;
const splitTags = (text: string) =>
  text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
const plural = (count: number, noun: string) =>
  `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

interface ChangeAgentsProps {
  action: Action;
  /** Ids of the agents. */
  ids: readonly string[];
  onDone: () => void;
  onClose: () => void;
}

export function ChangeAgents({ action, ids, onDone, onClose }: ChangeAgentsProps) {
  const [target, setTarget] = useState("");
  const [added, setAdded] = useState("");
  const [removed, setRemoved] = useState("");
  const queries = useQueryClient();
  const change: AgentChange = {
    template: { templateId: target || null },
    human: { humanPairId: target || null },
    tags: { addTags: splitTags(added), removeTags: splitTags(removed) },
    delete: { delete: true },
  }[action];
  const check = useMutation({
    meta: { skipErrorToast: true },
    mutationFn: () => changeAgents({ agents: [...ids], change, dryRun: true }),
  });
  const apply = useMutation({
    meta: { skipErrorToast: true },
    mutationFn: () => changeAgents({ agents: [...ids], change }),
    onSuccess: ({ changed, failed }) => {
      void queries.invalidateQueries();
      toast(`${plural(changed, "agent")} changed${failed ? `, ${failed} failed` : ""}`);
      onDone();
    },
  });
  const error = check.error ?? apply.error;
  const edit = (set: (text: string) => void) => (text: string) => {
    check.reset();
    set(text);
  };
  const footer = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      {check.data ? (
        <Button
          kind={action === "delete" ? "danger" : "primary"}
          type="submit"
          busy={apply.isPending}
          disabled={check.data.changed === 0}
        >
          {action === "delete" ? "Delete" : "Change"} {plural(check.data.changed, "agent")}
        </Button>
      ) : (
        <Button kind="primary" type="submit" busy={check.isPending}>
          Check {plural(ids.length, "agent")}
        </Button>
      )}
    </>
  );
  return (
    <Dialog
      title={TITLES[action]}
      onClose={onClose}
      onSubmit={() => (check.data ? apply.mutate() : check.mutate())}
      footer={footer}
      unguarded
    >
      {action === "template" && (
        <TemplatePicker
          label="Template"
          emptyLabel="None (defaults only)"
          hint="Pinned files stay as reviewed; the new template's versions need review."
          value={target}
          onChange={edit(setTarget)}
        />
      )}
      {action === "human" && (
        <PersonPicker
          label="Works for"
          emptyLabel="None"
          hint="USER.md is rewritten."
          value={target}
          onChange={edit(setTarget)}
        />
      )}
      {action === "tags" && (
        <>
          <TagsField label="Add tags" value={added} onChange={edit(setAdded)} />
          <TagsField label="Remove tags" value={removed} onChange={edit(setRemoved)} />
        </>
      )}
      {action === "delete" && !check.data && (
        <p>Checks first what is erased. Nothing is deleted yet.</p>
      )}
      {check.data && <DryRun outcomes={check.data} />}
      {error && (
        <div className="notice bad" role="alert">
          {toSentence(error)}
        </div>
      )}
    </Dialog>
  );
}

interface TagsFieldProps {
  label: string;
  value: string;
  onChange: (text: string) => void;
}

const TagsField = ({ label, value, onChange }: TagsFieldProps) => (
  <Field label={label} hint="Separated by spaces.">
    <input
      className="input mono"
      autoComplete="off"
      spellCheck={false}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  </Field>
);

/** Counts of what changes, and the agents that cannot be changed, by name. */
function DryRun({ outcomes }: { outcomes: AgentOutcomes }) {
  const { results, changed, failed } = outcomes;
  const failures = results.filter((result) => result.error);
  const unchanged = results.length - changed - failed;
  return (
    <div className="stack" role="status" aria-label="What changes">
      <p>
        <strong>{plural(changed, "agent")}</strong> would change
        {unchanged > 0 && `, ${unchanged.toLocaleString("en")} would not`}
        {failed > 0 && `, ${failed.toLocaleString("en")} cannot be changed`}.
      </p>
      <ul>
        {effectTexts(outcomes).map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      {failures.length > 0 && (
        <ul className="notice bad">
          {failures.slice(0, MAX_NAMED).map((result) => (
            <li key={result.agentId}>
              {escapeText(result.name || result.agentId, 60)}: {escapeText(result.error ?? "", 200)}
            </li>
          ))}
          {failures.length > MAX_NAMED && <li>and {failures.length - MAX_NAMED} more</li>}
        </ul>
      )}
    </div>
  );
}

const EFFECT_TEXTS: Record<string, string> = {
  added: "is added",
  removed: "is no longer there",
  content: "is served other content",
  source: "comes from another layer, with the same content",
  offered: "waits for review; the pinned content stays",
  rewritten: "is rewritten",
};

/** A line for each file and effect, most agents first, or for what a deletion erases. */
function effectTexts({ results }: AgentOutcomes): string[] {
  const counts = new Map<string, number>();
  const erased = { sessions: 0, memories: 0, keys: 0, files: 0 };
  for (const result of results) {
    for (const { path, effect } of result.files) {
      const text = `${escapeText(path, 80)} ${EFFECT_TEXTS[effect] ?? effect}`;
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    for (const name of Object.keys(erased) as (keyof typeof erased)[])
      erased[name] += result.erased?.[name] ?? 0;
  }
  const files = [...counts]
    .sort((a, b) => b[1] - a[1])
    .slice(0, MAX_NAMED)
    .map(([text, count]) => `${text}: ${plural(count, "agent")}`);
  const losses = Object.entries(erased)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count.toLocaleString("en")} ${name} would be erased`);
  return [...files, ...losses];
}

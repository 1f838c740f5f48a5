// Rules that say which files are of which class: the first that fits decides, the floor before all.

import { ArrowDown, ArrowUp, Lock, Plus, Trash2 } from "lucide-react";
import { useRef } from "react";
import { type FileClass, FLOOR, type Rule } from "../../api/policy";
import { Button } from "../../components/button";

const CLASSES: Record<FileClass, string> = {
  live: "follows its template and the defaults with every read",
  pinned: "stays as it was reviewed until the next review",
  managed: "is written by Carrel alone",
};

interface ClassRulesProps {
  rules: Rule[];
  onChange: (rules: Rule[]) => void;
}

export function ClassRules({ rules, onChange }: ClassRulesProps) {
  const list = useRef<HTMLOListElement>(null);
  const change = (at: number, to: Partial<Rule>) =>
    onChange(rules.map((rule, each) => (each === at ? { ...rule, ...to } : rule)));
  const move = (at: number, by: number) => {
    onChange(moved(rules, at, by));
    requestAnimationFrame(() =>
      list.current?.querySelector<HTMLInputElement>(`[data-at="${at + by}"] input`)?.focus(),
    );
  };
  return (
    <section className="card" aria-labelledby="classes">
      <header>
        <h3 id="classes">Classes of files</h3>
      </header>
      <div className="inside stack">
        <p className="soft">
          The first rule that fits a path decides. <code>*</code> stops at a slash, <code>**</code>{" "}
          does not. What no rule fits is live. <kbd>Alt</kbd> with an arrow moves a rule.
        </p>
        <ol className="rules" aria-label="Fixed rules">
          {FLOOR.map(({ pattern, class: kind }) => (
            <li key={pattern} className="row">
              <Lock size={14} aria-label="fixed" />
              <code className="grow">{pattern}</code>
              <span className="badge">{kind}</span>
            </li>
          ))}
        </ol>
        <ol className="rules" aria-label="Rules" ref={list}>
          {rules.map((rule, at) => (
            <Row
              // biome-ignore lint/suspicious/noArrayIndexKey: a rule is known by its place
              key={at}
              rule={rule}
              at={at}
              last={at === rules.length - 1}
              onChange={(to) => change(at, to)}
              onMove={(by) => move(at, by)}
              onRemove={() => onChange(rules.filter((_, each) => each !== at))}
            />
          ))}
        </ol>
        <div>
          <Button
            icon={Plus}
            onClick={() => onChange([...rules, { pattern: "", class: "pinned" }])}
          >
            Add a rule
          </Button>
        </div>
        <dl className="meanings">
          {Object.entries(CLASSES).map(([name, says]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{says}</dd>
            </div>
          ))}
        </dl>
      </div>
    </section>
  );
}

/** The same rules with one of them so many places further; the ends hold it. */
export function moved<Each>(list: Each[], at: number, by: number): Each[] {
  const to = at + by;
  if (to < 0 || to >= list.length) return list;
  const next = [...list];
  next.splice(to, 0, ...next.splice(at, 1));
  return next;
}

interface RowProps {
  rule: Rule;
  at: number;
  last: boolean;
  onChange: (to: Partial<Rule>) => void;
  onMove: (by: number) => void;
  onRemove: () => void;
}

function Row({ rule, at, last, onChange, onMove, onRemove }: RowProps) {
  const name = `rule ${at + 1}`;
  return (
    <li
      className="row"
      data-at={at}
      onKeyDown={(event) => {
        const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (!by || !event.altKey || (by < 0 ? at === 0 : last)) return;
        event.preventDefault();
        onMove(by);
      }}
    >
      <input
        className="input mono grow"
        aria-label={`Pattern of ${name}`}
        placeholder="policies/**"
        required
        maxLength={256}
        value={rule.pattern}
        onChange={(event) => onChange({ pattern: event.target.value })}
      />
      <select
        className="input"
        aria-label={`Class of ${name}`}
        value={rule.class}
        onChange={(event) => onChange({ class: event.target.value as FileClass })}
      >
        {Object.keys(CLASSES).map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <span className="row rule-buttons">
        <Button
          kind="plain"
          small
          icon={ArrowUp}
          aria-label={`Move ${name} up`}
          disabled={at === 0}
          onClick={() => onMove(-1)}
        />
        <Button
          kind="plain"
          small
          icon={ArrowDown}
          aria-label={`Move ${name} down`}
          disabled={last}
          onClick={() => onMove(1)}
        />
        <Button kind="plain" small icon={Trash2} aria-label={`Remove ${name}`} onClick={onRemove} />
      </span>
    </li>
  );
}

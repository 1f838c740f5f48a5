// File class rules: the first match applies, fixed rules first.

import { ArrowDown, ArrowUp, Lock, Plus, Trash2 } from "lucide-react";
import { useRef } from "react";
import { FIXED_RULES, type FileClass, type Rule } from "../../api/policy";
import { Button } from "../../components/button";

const CLASSES: Record<FileClass, string> = {
  live: "follows the template and the defaults immediately",
  pinned: "changes only after review",
  managed: "written by Carrel only",
};

interface ClassRulesProps {
  rules: Rule[];
  onChange: (rules: Rule[]) => void;
}

export function ClassRules({ rules, onChange }: ClassRulesProps) {
  const list = useRef<HTMLOListElement>(null);
  const changeRule = (index: number, to: Partial<Rule>) =>
    onChange(rules.map((rule, other) => (other === index ? { ...rule, ...to } : rule)));
  const move = (index: number, offset: number) => {
    onChange(moveItem(rules, index, offset));
    requestAnimationFrame(() =>
      list.current?.querySelector<HTMLInputElement>(`[data-at="${index + offset}"] input`)?.focus(),
    );
  };
  return (
    <section className="card" aria-labelledby="classes">
      <header>
        <h3 id="classes">File classes</h3>
      </header>
      <div className="card-body stack">
        <p className="soft">
          The first matching rule applies; other files are live. <code>*</code> matches within a
          folder, <code>**</code> across folders. <kbd>Alt</kbd> + arrow moves a rule.
        </p>
        <ol className="rules" aria-label="Fixed rules">
          {FIXED_RULES.map(({ pattern, class: kind }) => (
            <li key={pattern} className="row">
              <Lock size={14} aria-label="fixed" />
              <code className="grow">{pattern}</code>
              <span className="badge">{kind}</span>
            </li>
          ))}
        </ol>
        <ol className="rules" aria-label="Rules" ref={list}>
          {rules.map((rule, index) => (
            <RuleRow
              // biome-ignore lint/suspicious/noArrayIndexKey: a rule is identified by its position
              key={index}
              rule={rule}
              index={index}
              isLast={index === rules.length - 1}
              onChange={(to) => changeRule(index, to)}
              onMove={(offset) => move(index, offset)}
              onRemove={() => onChange(rules.filter((_, other) => other !== index))}
            />
          ))}
        </ol>
        <div>
          <Button
            icon={Plus}
            onClick={() => onChange([...rules, { pattern: "", class: "pinned" }])}
          >
            Add rule
          </Button>
        </div>
        <dl className="definitions">
          {Object.entries(CLASSES).map(([name, description]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{description}</dd>
            </div>
          ))}
        </dl>
      </div>
    </section>
  );
}

/** Moves an item by `offset`; returns the same list if that leaves its bounds. */
export function moveItem<Item>(list: Item[], index: number, offset: number): Item[] {
  const to = index + offset;
  if (to < 0 || to >= list.length) return list;
  const result = [...list];
  result.splice(to, 0, ...result.splice(index, 1));
  return result;
}

interface RuleRowProps {
  rule: Rule;
  index: number;
  isLast: boolean;
  onChange: (to: Partial<Rule>) => void;
  onMove: (offset: number) => void;
  onRemove: () => void;
}

function RuleRow({ rule, index, isLast, onChange, onMove, onRemove }: RuleRowProps) {
  const name = `rule ${index + 1}`;
  return (
    <li
      className="row"
      data-at={index}
      onKeyDown={(event) => {
        const offset = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        if (!offset || !event.altKey || (offset < 0 ? index === 0 : isLast)) return;
        event.preventDefault();
        onMove(offset);
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
        {Object.keys(CLASSES).map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
      <span className="row rule-buttons">
        <Button
          kind="plain"
          small
          icon={ArrowUp}
          aria-label={`Move ${name} up`}
          disabled={index === 0}
          onClick={() => onMove(-1)}
        />
        <Button
          kind="plain"
          small
          icon={ArrowDown}
          aria-label={`Move ${name} down`}
          disabled={isLast}
          onClick={() => onMove(1)}
        />
        <Button kind="plain" small icon={Trash2} aria-label={`Remove ${name}`} onClick={onRemove} />
      </span>
    </li>
  );
}

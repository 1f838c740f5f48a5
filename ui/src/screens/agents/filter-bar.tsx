import { useMemo } from "react";
import { plain } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { templatesOf, type Wanted } from "./agent-filters";
import type { AgentRow } from "./agent-list";

interface FiltersProps {
  rows: readonly AgentRow[];
  wanted: Wanted;
  want: (some: Partial<Wanted>) => void;
  shown: number;
}

/** What one looks for; the answer is beneath as one types. */
export function Filters({ rows, wanted, want, shown }: FiltersProps) {
  const templates = useMemo(() => templatesOf(rows), [rows]);
  return (
    <search className="agents-filters">
      <SearchField
        label="Find an agent by name, slug, template or human"
        placeholder="Name, slug, template or human"
        value={wanted.text}
        onChange={(text) => want({ text })}
      />
      <select
        className="input"
        aria-label="Template"
        value={wanted.template}
        onChange={(event) => want({ template: event.target.value })}
      >
        <option value="">All templates</option>
        {templates.map(({ id, name, n }) => (
          <option key={id} value={id}>
            {plain(name, 60)} ({n.toLocaleString("en")})
          </option>
        ))}
      </select>
      <select
        className="input"
        aria-label="Shared or private"
        value={wanted.kind}
        onChange={(event) => want({ kind: event.target.value as Wanted["kind"] })}
      >
        <option value="">Shared and private</option>
        <option value="shared">Shared</option>
        <option value="private">Private</option>
      </select>
      <label className="check">
        <input
          type="checkbox"
          checked={wanted.updates}
          onChange={(event) => want({ updates: event.target.checked })}
        />
        Updates waiting
      </label>
      <span className="faint end" role="status">
        {shown === rows.length ? "" : `${shown.toLocaleString("en")} shown`}
      </span>
    </search>
  );
}

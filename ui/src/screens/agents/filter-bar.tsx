import { useMemo } from "react";
import { escapeText } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { type AgentFilters, countByTemplate } from "./agent-filters";
import type { AgentRow } from "./agent-list";

interface FilterBarProps {
  rows: readonly AgentRow[];
  filters: AgentFilters;
  setFilters: (patch: Partial<AgentFilters>) => void;
  visibleCount: number;
}

export function FilterBar({ rows, filters, setFilters, visibleCount }: FilterBarProps) {
  const templates = useMemo(() => countByTemplate(rows), [rows]);
  return (
    <search className="agents-filters">
      <SearchField
        label="Filter agents by name, slug, template or human"
        placeholder="Name, slug, template or human"
        value={filters.text}
        onChange={(text) => setFilters({ text })}
      />
      <select
        className="input"
        aria-label="Template"
        value={filters.template}
        onChange={(event) => setFilters({ template: event.target.value })}
      >
        <option value="">All templates</option>
        {templates.map(({ id, name, count }) => (
          <option key={id} value={id}>
            {escapeText(name, 60)} ({count.toLocaleString("en")})
          </option>
        ))}
      </select>
      <select
        className="input"
        aria-label="Shared or private"
        value={filters.kind}
        onChange={(event) => setFilters({ kind: event.target.value as AgentFilters["kind"] })}
      >
        <option value="">Shared and private</option>
        <option value="shared">Shared</option>
        <option value="private">Private</option>
      </select>
      <label className="check">
        <input
          type="checkbox"
          checked={filters.updates}
          onChange={(event) => setFilters({ updates: event.target.checked })}
        />
        Updates available
      </label>
      <span className="faint end" role="status">
        {visibleCount === rows.length ? "" : `${visibleCount.toLocaleString("en")} shown`}
      </span>
    </search>
  );
}

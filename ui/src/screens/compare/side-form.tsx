// Fields of one side of a comparison, with names that are searched on the server.

import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { findAgentsQuery } from "../../api/runs";
import { templateOptionsQuery } from "../../api/select-options";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";
import {
  fromLocalInput,
  KINDS,
  type Reference,
  type ReferenceKind,
  toLocalInput,
} from "./references";

interface SideFormProps {
  label: string;
  value: Reference;
  onChange: (value: Reference) => void;
}

export function SideForm({ label, value, onChange }: SideFormProps) {
  const { kind, path, moment } = value;
  const isVersion = moment.startsWith("v");
  return (
    <fieldset className="card compare-side">
      <legend>{label}</legend>
      <Field label="Kind">
        <select
          className="input"
          value={kind}
          onChange={(event) => {
            const next = event.target.value as ReferenceKind;
            onChange({ ...value, kind: next, name: "", moment: next === "run" ? "" : moment });
          }}
        >
          {Object.entries(KINDS).map(([key, name]) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
        </select>
      </Field>
      {kind !== "defaults" && <NameField value={value} onChange={onChange} />}
      <Field label="File" hint="All files if empty.">
        <input
          className="input mono"
          value={path}
          placeholder="SOUL.md"
          onChange={(event) => onChange({ ...value, path: event.target.value })}
        />
      </Field>
      {kind !== "run" && (
        <Field label={isVersion ? "Version" : "Time"} hint="Now if empty.">
          {isVersion ? (
            <input
              className="input"
              type="number"
              min={1}
              value={moment.slice(1)}
              onChange={(event) =>
                onChange({ ...value, moment: event.target.value && `v${event.target.value}` })
              }
            />
          ) : (
            <input
              className="input"
              type="datetime-local"
              value={toLocalInput(moment)}
              onChange={(event) =>
                onChange({ ...value, moment: fromLocalInput(event.target.value) })
              }
            />
          )}
        </Field>
      )}
    </fieldset>
  );
}

interface Suggestion {
  name: string;
  label: string;
}

function NameField({ value, onChange }: Omit<SideFormProps, "label">) {
  const id = useId();
  const suggestions = useSuggestions(value);
  return (
    <div>
      <Field label={value.kind === "run" || value.kind === "workspace" ? "ID" : "Name"}>
        <input
          className="input"
          value={value.name}
          list={id}
          placeholder={value.kind === "run" ? "run_…" : "Search by name"}
          autoComplete="off"
          onChange={(event) => onChange({ ...value, name: event.target.value })}
        />
      </Field>
      <datalist id={id}>
        {suggestions.map(({ name, label }) => (
          <option key={name} value={name}>
            {escapeText(label, 80)}
          </option>
        ))}
      </datalist>
    </div>
  );
}

/** Slugs of agents or templates whose name or slug starts with the text. */
function useSuggestions({ kind, name }: Reference): Suggestion[] {
  const text = name.trim().toLowerCase();
  const agents = useQuery({ ...findAgentsQuery(text), enabled: kind === "agent" });
  const templates = useQuery({ ...templateOptionsQuery, enabled: kind === "template" });
  if (kind === "agent") return (agents.data ?? []).map(toSuggestion);
  if (kind !== "template") return [];
  return (templates.data ?? [])
    .filter(({ slug, name }) => slug.includes(text) || name.toLowerCase().includes(text))
    .slice(0, 50)
    .map(toSuggestion);
}

const toSuggestion = ({ slug, name }: { slug: string; name: string }) => ({
  name: slug,
  label: name,
});

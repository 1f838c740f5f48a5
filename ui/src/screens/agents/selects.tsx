import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { peopleOptionsQuery, templateOptionsQuery } from "../../api/select-options";
import { escapeText } from "../../components/escape-text";
import { Field } from "../../components/field";

interface SelectProps {
  value: string;
  onChange: (id: string) => void;
  hint?: ReactNode;
  disabled?: boolean;
}

export function TemplateSelect({ value, onChange, hint, disabled }: SelectProps) {
  const { data = [] } = useQuery(templateOptionsQuery);
  return (
    <Field label="Template" hint={hint}>
      <select
        className="input"
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.target.value)}
      >
        <option value="">None (defaults only)</option>
        {data.map(({ id, name, slug }) => (
          <option key={id} value={id}>
            {escapeText(name, 60)} ({slug})
          </option>
        ))}
      </select>
    </Field>
  );
}

export function PersonSelect({
  label,
  emptyLabel,
  value,
  onChange,
  hint,
  disabled,
}: SelectProps & { label: string; emptyLabel: string }) {
  const { data = [] } = useQuery(peopleOptionsQuery);
  return (
    <Field label={label} hint={hint}>
      <select
        className="input"
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.target.value)}
      >
        <option value="">{emptyLabel}</option>
        {data.map(({ id, name, email }) => (
          <option key={id} value={id}>
            {escapeText(name, 60)} ({escapeText(email, 80)})
          </option>
        ))}
      </select>
    </Field>
  );
}

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { peopleChoices, templateChoices } from "../../api/select-options";
import { plain } from "../../components/escape-text";
import { Field } from "../../components/field";

interface ChoiceProps {
  value: string;
  onChange: (id: string) => void;
  hint?: ReactNode;
  disabled?: boolean;
}

export function TemplateChoice({ value, onChange, hint, disabled }: ChoiceProps) {
  const { data = [] } = useQuery(templateChoices);
  return (
    <Field label="Template" hint={hint}>
      <select
        className="input"
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.target.value)}
      >
        <option value="">None: only the defaults</option>
        {data.map(({ id, name, slug }) => (
          <option key={id} value={id}>
            {plain(name, 60)} ({slug})
          </option>
        ))}
      </select>
    </Field>
  );
}

export function PersonChoice({
  label,
  nobody,
  value,
  onChange,
  hint,
  disabled,
}: ChoiceProps & { label: string; nobody: string }) {
  const { data = [] } = useQuery(peopleChoices);
  return (
    <Field label={label} hint={hint}>
      <select
        className="input"
        value={value}
        disabled={disabled}
        onChange={(event) => onChange(event.target.value)}
      >
        <option value="">{nobody}</option>
        {data.map(({ id, name, email }) => (
          <option key={id} value={id}>
            {plain(name, 60)} ({plain(email, 80)})
          </option>
        ))}
      </select>
    </Field>
  );
}

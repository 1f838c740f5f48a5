import { Plus, X } from "lucide-react";
import { Button } from "../../components/button";
import type { Variable } from "./sandbox-draft";

interface EnvVariablesProps {
  variables: Variable[];
  onChange: (variables: Variable[]) => void;
}

/** Environment variables of commands. Stored values are hidden and stay unless replaced. */
export function EnvVariables({ variables, onChange }: EnvVariablesProps) {
  const change = (id: number, to: Partial<Variable>) =>
    onChange(variables.map((variable) => (variable.id === id ? { ...variable, ...to } : variable)));
  const add = () => {
    const id = 1 + Math.max(-1, ...variables.map((variable) => variable.id));
    onChange([...variables, { id, name: "", value: "", isStored: false }]);
  };
  return (
    <fieldset className="checkbox-group">
      <legend className="label">Environment variables</legend>
      {variables.map(({ id, name, value, isStored }) => (
        <div className="row" key={id}>
          <input
            className="input mono"
            aria-label="Variable name"
            placeholder="NAME"
            required
            readOnly={isStored}
            value={name}
            onChange={(event) => change(id, { name: event.target.value })}
          />
          <input
            className="input mono"
            type="password"
            autoComplete="new-password"
            aria-label={`Value of ${name || "variable"}`}
            placeholder={isStored ? "******** (stored)" : "value"}
            value={value}
            onChange={(event) => change(id, { value: event.target.value })}
          />
          <Button
            kind="plain"
            icon={X}
            aria-label={`Remove ${name || "variable"}`}
            onClick={() => onChange(variables.filter((variable) => variable.id !== id))}
          />
        </div>
      ))}
      <div>
        <Button small icon={Plus} onClick={add}>
          Add variable
        </Button>
      </div>
    </fieldset>
  );
}

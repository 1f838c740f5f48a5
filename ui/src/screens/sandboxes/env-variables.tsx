import { Plus, X } from "lucide-react";
import { Button } from "../../components/button";
import type { Variable } from "./sandbox-draft";

interface EnvVariablesProps {
  variables: Variable[];
  onChange: (variables: Variable[]) => void;
}

/** Variables that commands find. What is stored stays hidden, and stays unless typed anew. */
export function EnvVariables({ variables, onChange }: EnvVariablesProps) {
  const change = (id: number, to: Partial<Variable>) =>
    onChange(variables.map((variable) => (variable.id === id ? { ...variable, ...to } : variable)));
  const add = () => {
    const id = 1 + Math.max(-1, ...variables.map((variable) => variable.id));
    onChange([...variables, { id, name: "", value: "", isStored: false }]);
  };
  return (
    <fieldset className="choices">
      <legend className="label">Variables</legend>
      {variables.map(({ id, name, value, isStored }) => (
        <div className="row" key={id}>
          <input
            className="input mono"
            aria-label="Name of the variable"
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
            aria-label={`Value of ${name || "the variable"}`}
            placeholder={isStored ? "******** (kept)" : "value"}
            value={value}
            onChange={(event) => change(id, { value: event.target.value })}
          />
          <Button
            kind="plain"
            icon={X}
            aria-label={`Remove ${name || "the variable"}`}
            onClick={() => onChange(variables.filter((variable) => variable.id !== id))}
          />
        </div>
      ))}
      <div>
        <Button small icon={Plus} onClick={add}>
          Add a variable
        </Button>
      </div>
    </fieldset>
  );
}

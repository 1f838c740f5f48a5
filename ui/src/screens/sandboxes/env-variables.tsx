import { Plus, X } from "lucide-react";
import { Button } from "../../components/button";
import type { Variable } from "./sandbox-draft";

interface VariablesProps {
  variables: Variable[];
  onChange: (variables: Variable[]) => void;
}

/** Variables that commands find. What is stored stays hidden, and stays unless typed anew. */
export function Variables({ variables, onChange }: VariablesProps) {
  const change = (id: number, to: Partial<Variable>) =>
    onChange(variables.map((each) => (each.id === id ? { ...each, ...to } : each)));
  const add = () => {
    const id = 1 + Math.max(-1, ...variables.map((each) => each.id));
    onChange([...variables, { id, name: "", value: "", kept: false }]);
  };
  return (
    <fieldset className="choices">
      <legend className="label">Variables</legend>
      {variables.map(({ id, name, value, kept }) => (
        <div className="row" key={id}>
          <input
            className="input mono"
            aria-label="Name of the variable"
            placeholder="NAME"
            required
            readOnly={kept}
            value={name}
            onChange={(event) => change(id, { name: event.target.value })}
          />
          <input
            className="input mono"
            type="password"
            autoComplete="new-password"
            aria-label={`Value of ${name || "the variable"}`}
            placeholder={kept ? "******** (kept)" : "value"}
            value={value}
            onChange={(event) => change(id, { value: event.target.value })}
          />
          <Button
            kind="plain"
            icon={X}
            aria-label={`Remove ${name || "the variable"}`}
            onClick={() => onChange(variables.filter((each) => each.id !== id))}
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

// Several of a few, each with what it means.

interface ChoicesProps<Name extends string> {
  legend: string;
  of: Record<Name, string>;
  chosen: readonly Name[];
  onChange: (chosen: Name[]) => void;
  disabled?: (name: Name) => boolean;
}

export function Choices<Name extends string>({
  legend,
  of,
  chosen,
  onChange,
  disabled,
}: ChoicesProps<Name>) {
  const names = Object.keys(of) as Name[];
  const toggle = (name: Name, on: boolean) =>
    onChange(names.filter((each) => (each === name ? on : chosen.includes(each))));
  return (
    <fieldset className="choices">
      <legend className="label">{legend}</legend>
      {names.map((name) => (
        <label key={name} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            disabled={disabled?.(name)}
            onChange={(event) => toggle(name, event.target.checked)}
          />
          <span>
            <code>{name}</code> <span className="faint">{of[name]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

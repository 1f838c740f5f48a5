// A group of checkboxes, each with a description.

interface CheckboxGroupProps<Name extends string> {
  legend: string;
  options: Record<Name, string>;
  selected: readonly Name[];
  onChange: (selected: Name[]) => void;
  disabled?: (name: Name) => boolean;
}

export function CheckboxGroup<Name extends string>({
  legend,
  options,
  selected,
  onChange,
  disabled,
}: CheckboxGroupProps<Name>) {
  const names = Object.keys(options) as Name[];
  const toggle = (name: Name, isOn: boolean) =>
    onChange(names.filter((other) => (other === name ? isOn : selected.includes(other))));
  return (
    <fieldset className="checkbox-group">
      <legend className="label">{legend}</legend>
      {names.map((name) => (
        <label key={name} className="check">
          <input
            type="checkbox"
            checked={selected.includes(name)}
            disabled={disabled?.(name)}
            onChange={(event) => toggle(name, event.target.checked)}
          />
          <span>
            <code>{name}</code> <span className="faint">{options[name]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

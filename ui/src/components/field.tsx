import { Search } from "lucide-react";
import {
  cloneElement,
  type InputHTMLAttributes,
  type ReactElement,
  type ReactNode,
  useId,
} from "react";

interface FieldProps {
  label: string;
  hint?: ReactNode;
  wrong?: string | null;
  children: ReactElement<{ id?: string; "aria-describedby"?: string; "aria-invalid"?: boolean }>;
}

/** A label, what is filled in, and what is said of it, tied together for all who read it. */
export function Field({ label, hint, wrong, children }: FieldProps) {
  const id = useId();
  const said = hint || wrong ? `${id}-said` : undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {cloneElement(children, {
        id,
        "aria-describedby": said,
        "aria-invalid": Boolean(wrong) || undefined,
      })}
      {(hint || wrong) && (
        <span id={said} className={wrong ? "wrong" : "hint"} role={wrong ? "alert" : undefined}>
          {wrong || hint}
        </span>
      )}
    </div>
  );
}

type SearchProps = Omit<InputHTMLAttributes<HTMLInputElement>, "onChange"> & {
  label: string;
  onChange: (text: string) => void;
};

export function SearchField({ label, onChange, ...rest }: SearchProps) {
  return (
    <div className="search-field">
      <Search size={15} aria-hidden />
      <input
        {...rest}
        type="search"
        className="input"
        aria-label={label}
        placeholder={rest.placeholder ?? label}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}

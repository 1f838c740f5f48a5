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
  error?: string | null;
  children: ReactElement<{ id?: string; "aria-describedby"?: string; "aria-invalid"?: boolean }>;
}

/** A form field: label, input, and hint or error, linked for screen readers. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const descriptionId = hint || error ? `${id}-description` : undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {cloneElement(children, {
        id,
        "aria-describedby": descriptionId,
        "aria-invalid": Boolean(error) || undefined,
      })}
      {(hint || error) && (
        <span
          id={descriptionId}
          className={error ? "field-error" : "hint"}
          role={error ? "alert" : undefined}
        >
          {error || hint}
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

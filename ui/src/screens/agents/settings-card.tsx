import type { FormEvent, ReactNode } from "react";
import { sentence } from "../../api/problem";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { useSession } from "../../layout/session-context";

interface SettingsCardProps {
  title: string;
  under?: ReactNode;
  children: ReactNode;
  dirty: boolean;
  busy: boolean;
  error: unknown;
  onSave: () => void;
  onReset: () => void;
}

/** Some settings that are saved together. Members see them and cannot change them. */
export function SettingsCard(props: SettingsCardProps) {
  const { title, under, children, dirty, busy, error, onSave, onReset } = props;
  const admin = isAdmin(useSession());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (dirty) onSave();
  };
  return (
    <form className="card settings-card" onSubmit={submit} aria-label={title}>
      <header>
        <h2>{title}</h2>
      </header>
      <fieldset className="inside stack" disabled={!admin}>
        {under && <div className="soft">{under}</div>}
        {children}
        {Boolean(error) && (
          <div className="notice bad" role="alert">
            {sentence(error)}
          </div>
        )}
      </fieldset>
      {admin && (
        <footer className="row">
          <span className="grow faint">{dirty ? "Not saved yet" : ""}</span>
          {dirty && <Button onClick={onReset}>Undo</Button>}
          <Button kind="primary" type="submit" disabled={!dirty} busy={busy}>
            Save
          </Button>
        </footer>
      )}
    </form>
  );
}

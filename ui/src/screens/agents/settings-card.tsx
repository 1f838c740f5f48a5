import type { FormEvent, ReactNode } from "react";
import { toSentence } from "../../api/problem";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { useUnsavedDraft } from "../../components/unsaved-drafts";
import { useSession } from "../../layout/session-context";

interface SettingsCardProps {
  title: string;
  description?: ReactNode;
  children: ReactNode;
  dirty: boolean;
  /** The input is valid. */
  canSave?: boolean;
  busy: boolean;
  error: unknown;
  onSave: () => void;
  onReset: () => void;
}

/** Settings that are saved together; read-only for members. */
export function SettingsCard(props: SettingsCardProps) {
  const { title, description, children, dirty, busy, error, onSave, onReset } = props;
  const admin = isAdmin(useSession());
  const canSave = dirty && (props.canSave ?? true);
  useUnsavedDraft(dirty, title);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (canSave) onSave();
  };
  return (
    <form className="card settings-card" onSubmit={submit} aria-label={title}>
      <header>
        <h2>{title}</h2>
      </header>
      <fieldset className="card-body stack" disabled={!admin}>
        {description && <div className="soft">{description}</div>}
        {children}
        {Boolean(error) && (
          <div className="notice bad" role="alert">
            {toSentence(error)}
          </div>
        )}
      </fieldset>
      {admin && (
        <footer className="row">
          <span className="grow faint">{dirty ? "Unsaved changes" : ""}</span>
          {dirty && <Button onClick={onReset}>Discard</Button>}
          <Button kind="primary" type="submit" disabled={!canSave} busy={busy}>
            Save
          </Button>
        </footer>
      )}
    </form>
  );
}

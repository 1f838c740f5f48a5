import { AlertTriangle } from "lucide-react";
import type { ReactNode } from "react";
import { toSentence } from "../api/problem";
import { Button } from "./button";
import { Dialog } from "./dialog";

interface FormDialogProps {
  title: ReactNode;
  action: string;
  danger?: boolean;
  wide?: boolean;
  busy: boolean;
  /** Error of the last submit. */
  error: unknown;
  disabled?: boolean;
  onSubmit: () => void;
  onClose: () => void;
  /** Closes without asking, since the input is not worth keeping. */
  unguarded?: boolean;
  children: ReactNode;
}

/** A form in a dialog that shows the server's error. */
export function FormDialog({
  title,
  action,
  danger,
  wide,
  busy,
  error,
  disabled,
  onSubmit,
  onClose,
  unguarded,
  children,
}: FormDialogProps) {
  const footer = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind={danger ? "danger" : "primary"} type="submit" busy={busy} disabled={disabled}>
        {action}
      </Button>
    </>
  );
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={onSubmit}
      footer={footer}
      wide={wide}
      failed={Boolean(error)}
      unguarded={unguarded || danger}
    >
      {children}
      <FormError error={error} />
    </Dialog>
  );
}

export function FormError({ error }: { error: unknown }) {
  if (!error) return null;
  return (
    <p className="notice bad" role="alert">
      <AlertTriangle size={16} aria-hidden />
      <span className="grow bidi">{toSentence(error)}</span>
    </p>
  );
}

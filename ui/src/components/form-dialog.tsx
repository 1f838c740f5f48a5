import { AlertTriangle } from "lucide-react";
import type { ReactNode } from "react";
import { sentence } from "../api/problem";
import { Button } from "./button";
import { Dialog } from "./dialog";

interface FormDialogProps {
  title: ReactNode;
  action: string;
  danger?: boolean;
  wide?: boolean;
  busy: boolean;
  /** What the server said of what was filled in. */
  error: unknown;
  disabled?: boolean;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** A form in a dialog, which says itself what the server did not take. */
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
  children,
}: FormDialogProps) {
  const foot = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind={danger ? "danger" : "primary"} type="submit" busy={busy} disabled={disabled}>
        {action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose} onSubmit={onSubmit} foot={foot} wide={wide}>
      {children}
      <Wrong error={error} />
    </Dialog>
  );
}

/** What went wrong, in the words of the server. */
export function Wrong({ error }: { error: unknown }) {
  if (!error) return null;
  return (
    <p className="notice bad" role="alert">
      <AlertTriangle size={16} aria-hidden />
      <span className="grow bidi">{sentence(error)}</span>
    </p>
  );
}

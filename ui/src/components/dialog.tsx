import { X } from "lucide-react";
import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./button";

interface DialogProps {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
  foot?: ReactNode;
  wide?: boolean;
  /** Makes it a form: Enter in a field submits. */
  onSubmit?: () => void;
}

/** Opens a dialog element as a modal for as long as it is there, and gives the focus back. */
export function useModal() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    if (shown && !shown.open) shown.showModal();
    return () => {
      shown?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return dialog;
}

/** The browser's own modal dialog: it keeps the focus and closes by Escape. */
export function Dialog({ title, onClose, children, foot, wide, onSubmit }: DialogProps) {
  const dialog = useModal();
  const name = useId();
  const inside = (
    <>
      <div className="dialog-head">
        <h2 id={name}>{title}</h2>
        <Button kind="plain" icon={X} aria-label="Close" onClick={onClose} />
      </div>
      <div className="dialog-inside">{children}</div>
      {foot && <div className="dialog-foot">{foot}</div>}
    </>
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit?.();
  };
  return (
    <dialog
      ref={dialog}
      className={wide ? "dialog wide" : "dialog"}
      aria-labelledby={name}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      {onSubmit ? (
        <form onSubmit={submit}>{inside}</form>
      ) : (
        <div className="dialog-body">{inside}</div>
      )}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ReactNode;
  action: string;
  danger?: boolean;
  busy?: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

export function Confirm({
  title,
  children,
  action,
  danger,
  busy,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const foot = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind={danger ? "danger" : "primary"} busy={busy} type="submit">
        {action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose} onSubmit={onConfirm} foot={foot}>
      {children}
    </Dialog>
  );
}

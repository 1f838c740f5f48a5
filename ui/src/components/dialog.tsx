import { X } from "lucide-react";
import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./button";

interface DialogProps {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
  /** Renders the content as a form that Enter submits. */
  onSubmit?: () => void;
}

/** Opens a dialog element as modal while mounted; restores the focus afterwards. */
export function useModal() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    const previousFocus = document.activeElement;
    if (element && !element.open) element.showModal();
    return () => {
      element?.close();
      if (previousFocus instanceof HTMLElement && previousFocus.isConnected) previousFocus.focus();
    };
  }, []);
  return dialog;
}

/** The native modal dialog, which traps the focus and closes with Escape. */
export function Dialog({ title, onClose, children, footer, wide, onSubmit }: DialogProps) {
  const dialog = useModal();
  const titleId = useId();
  const content = (
    <>
      <div className="dialog-header">
        <h2 id={titleId}>{title}</h2>
        <Button kind="plain" icon={X} aria-label="Close" onClick={onClose} />
      </div>
      <div className="dialog-content">{children}</div>
      {footer && <div className="dialog-footer">{footer}</div>}
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
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      {onSubmit ? (
        <form onSubmit={submit}>{content}</form>
      ) : (
        <div className="dialog-body">{content}</div>
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
  const footer = (
    <>
      <Button onClick={onClose}>Cancel</Button>
      <Button kind={danger ? "danger" : "primary"} busy={busy} type="submit">
        {action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} onClose={onClose} onSubmit={onConfirm} footer={footer}>
      {children}
    </Dialog>
  );
}

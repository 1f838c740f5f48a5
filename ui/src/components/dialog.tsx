import { X } from "lucide-react";
import {
  type FormEvent,
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";
import { Button } from "./button";
import { type Draft, registerDraft } from "./unsaved-drafts";

interface DialogProps {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
  /** Renders the content as a form that Enter submits. */
  onSubmit?: () => void;
  /** The last submit failed, so the input is unsaved again. */
  failed?: boolean;
  /** Closes without asking, since the input is not worth keeping. */
  unguarded?: boolean;
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

/** Input of a dialog's form that was not submitted; it blocks navigation, and asks on closing. */
function useFormDraft(name: string, failed: boolean) {
  const draft = useRef<Draft>({ name, isDirty: false });
  const [isEdited, setEdited] = useState(false);
  draft.current.name = name;
  useEffect(() => registerDraft(draft.current), []);
  useEffect(() => {
    if (failed) draft.current.isDirty = true;
  }, [failed]);
  const onInput = (event: FormEvent) => {
    if ((event.target as HTMLInputElement).type === "search") return;
    draft.current.isDirty = true;
    setEdited(true);
  };
  // Synchronous, since the response may navigate.
  const onSubmitted = () => {
    draft.current.isDirty = false;
  };
  return { isEdited, onInput, onSubmitted };
}

/**
 * The native modal dialog, which traps the focus and closes with Escape.
 *
 * A form that was edited asks before Escape, its close button or navigation discards the input.
 */
export function Dialog(props: DialogProps) {
  const { title, onClose, children, footer, wide, onSubmit } = props;
  const dialog = useModal();
  const titleId = useId();
  const draft = useFormDraft(
    typeof title === "string" ? title : "this form",
    props.failed ?? false,
  );
  const [isAsking, setAsking] = useState(false);
  const isGuarded = onSubmit && !props.unguarded;
  const requestClose = () => (isGuarded && draft.isEdited ? setAsking(true) : onClose());
  const content = (
    <>
      <div className="dialog-header">
        <h2 id={titleId}>{title}</h2>
        <Button kind="plain" icon={X} aria-label="Close" onClick={requestClose} />
      </div>
      <div className="dialog-content">{children}</div>
      {footer && <div className="dialog-footer">{footer}</div>}
    </>
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    draft.onSubmitted();
    onSubmit?.();
  };
  // The browser lets a page refuse only the first of several Escapes as "cancel".
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    requestClose();
  };
  return (
    <>
      <dialog
        ref={dialog}
        className={wide ? "dialog wide" : "dialog"}
        aria-labelledby={titleId}
        onKeyDown={onKeyDown}
        onCancel={(event) => {
          event.preventDefault();
          requestClose();
        }}
      >
        {onSubmit ? (
          <form onSubmit={submit} onInput={isGuarded ? draft.onInput : undefined}>
            {content}
          </form>
        ) : (
          <div className="dialog-body">{content}</div>
        )}
      </dialog>
      {isAsking && (
        <Confirm
          title="Discard unsaved changes?"
          action="Discard"
          danger
          onConfirm={onClose}
          onClose={() => setAsking(false)}
        >
          <p>What you entered is not saved.</p>
        </Confirm>
      )}
    </>
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
    <Dialog title={title} onClose={onClose} onSubmit={onConfirm} footer={footer} unguarded>
      {children}
    </Dialog>
  );
}

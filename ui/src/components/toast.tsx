import { AlertTriangle, Check, X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { toSentence } from "../api/problem";
import { Button } from "./button";

interface Toast {
  id: number;
  text: string;
  isError: boolean;
  action?: ToastAction | undefined;
}

interface ToastAction {
  label: string;
  run: () => Promise<void>;
}

let toasts: readonly Toast[] = [];
let count = 0;
const watchers = new Set<() => void>();

function setToasts(next: readonly Toast[]) {
  toasts = next;
  for (const watcher of watchers) watcher();
}

const removeToast = (id: number) => setToasts(toasts.filter((toast) => toast.id !== id));

/** Shows a message for 4.5 seconds, 12 with an action; an error stays until dismissed. */
export function toast(text: string, isError = false, action?: ToastAction): void {
  count += 1;
  const id = count;
  setToasts([...toasts.slice(-3), { id, text, isError, action }]);
  if (!isError) setTimeout(() => removeToast(id), action ? 12_000 : 4500);
}

export const toastProblem = (error: unknown): void => toast(toSentence(error), true);

const subscribe = (watcher: () => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

export function Toasts() {
  const current = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {current.map(({ id, text, isError, action }) => (
        <div key={id} className={isError ? "toast bad" : "toast"}>
          {isError ? <AlertTriangle size={16} aria-hidden /> : <Check size={16} aria-hidden />}
          <span className="grow">{text}</span>
          {action && (
            <Button
              small
              onClick={() => {
                removeToast(id);
                action.run().catch(toastProblem);
              }}
            >
              {action.label}
            </Button>
          )}
          <Button
            kind="plain"
            small
            icon={X}
            aria-label="Dismiss"
            onClick={() => removeToast(id)}
          />
        </div>
      ))}
    </div>
  );
}

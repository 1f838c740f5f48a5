import { AlertTriangle, Check, X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { sentence } from "../api/problem";
import { Button } from "./button";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

let toasts: readonly Toast[] = [];
let count = 0;
const watchers = new Set<() => void>();

function set(next: readonly Toast[]) {
  toasts = next;
  for (const told of watchers) told();
}

const drop = (id: number) => set(toasts.filter((toast) => toast.id !== id));

/** Says in a corner what was done. What went wrong stays until it is put away. */
export function toast(text: string, bad = false): void {
  count += 1;
  const id = count;
  set([...toasts.slice(-3), { id, text, bad }]);
  if (!bad) setTimeout(() => drop(id), 4500);
}

export const toastProblem = (error: unknown): void => toast(sentence(error), true);

const subscribe = (told: () => void) => {
  watchers.add(told);
  return () => watchers.delete(told);
};

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, bad }) => (
        <div key={id} className={bad ? "toast bad" : "toast"}>
          {bad ? <AlertTriangle size={16} aria-hidden /> : <Check size={16} aria-hidden />}
          <span className="grow">{text}</span>
          <Button kind="plain" small icon={X} aria-label="Put away" onClick={() => drop(id)} />
        </div>
      ))}
    </div>
  );
}

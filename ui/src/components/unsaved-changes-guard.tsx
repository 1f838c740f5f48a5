// Asks before navigation discards unsaved changes.

import { useEffect } from "react";
import { useBlocker } from "react-router";
import { Confirm } from "./dialog";
import { escapeText } from "./escape-text";
import { registerDraft } from "./unsaved-drafts";

const fileParam = (search: string) => new URLSearchParams(search).get("file");

export function UnsavedChangesGuard({ isDirty, name }: { isDirty: boolean; name: string }) {
  const blocker = useBlocker(
    ({ currentLocation: current, nextLocation: next }) =>
      isDirty &&
      (current.pathname !== next.pathname || fileParam(current.search) !== fileParam(next.search)),
  );
  useEffect(() => {
    if (!isDirty) return;
    const preventUnload = (event: BeforeUnloadEvent) => event.preventDefault();
    const unregister = registerDraft();
    addEventListener("beforeunload", preventUnload);
    return () => {
      unregister();
      removeEventListener("beforeunload", preventUnload);
    };
  }, [isDirty]);
  if (blocker.state !== "blocked") return null;
  return (
    <Confirm
      title="Discard unsaved changes?"
      action="Discard"
      danger
      onConfirm={() => blocker.proceed()}
      onClose={() => blocker.reset()}
    >
      <p>
        Your changes to <span className="mono bidi">{escapeText(name, 80)}</span> are not saved.
      </p>
    </Confirm>
  );
}

// Asks before navigation discards unsaved drafts.

import { useEffect } from "react";
import { type Location, useBlocker } from "react-router";
import { Confirm } from "./dialog";
import { escapeText } from "./escape-text";
import { dirtyDrafts, hasDrafts } from "./unsaved-drafts";

/** Parameters of a URL that name the edited object, besides its path. */
const OBJECT_PARAMS = ["file", "key", "of"];

/** State of a navigation that discards drafts without asking, since their object is deleted. */
export const DISCARD_DRAFTS = { discardsDrafts: true };

function objectOf({ pathname, search }: Location): string {
  const params = new URLSearchParams(search);
  return JSON.stringify([pathname, ...OBJECT_PARAMS.map((name) => params.get(name))]);
}

/** Guards all drafts of the page: the router allows a single blocker. */
export function UnsavedChangesGuard() {
  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) =>
      hasDrafts() &&
      !nextLocation.state?.discardsDrafts &&
      objectOf(currentLocation) !== objectOf(nextLocation),
  );
  useEffect(() => {
    const preventUnload = (event: BeforeUnloadEvent) => hasDrafts() && event.preventDefault();
    addEventListener("beforeunload", preventUnload);
    return () => removeEventListener("beforeunload", preventUnload);
  }, []);
  if (blocker.state !== "blocked") return null;
  return (
    <DiscardDialog
      names={dirtyDrafts().map(({ name }) => name)}
      onConfirm={() => blocker.proceed()}
      onClose={() => blocker.reset()}
    />
  );
}

interface DiscardDialogProps {
  /** Names of what was edited. */
  names: string[];
  onConfirm: () => void;
  onClose: () => void;
}

function DiscardDialog({ names, onConfirm, onClose }: DiscardDialogProps) {
  return (
    <Confirm
      title="Discard unsaved changes?"
      action="Discard"
      danger
      onConfirm={onConfirm}
      onClose={onClose}
    >
      <p>
        Your changes to{" "}
        {names.map((name, index) => (
          <span key={name}>
            {index > 0 && ", "}
            <strong className="bidi">{escapeText(name, 80)}</strong>
          </span>
        ))}{" "}
        are not saved.
      </p>
    </Confirm>
  );
}

// Nobody loses what they wrote by a click beside: asks before a draft is left behind.

import { useEffect } from "react";
import { useBlocker } from "react-router";
import { Confirm } from "./dialog";
import { plain } from "./escape-text";
import { holdDraft } from "./unsaved-drafts";

const fileOf = (search: string) => new URLSearchParams(search).get("file");

export function LeaveGuard({ when, path }: { when: boolean; path: string }) {
  const blocker = useBlocker(
    ({ currentLocation: here, nextLocation: there }) =>
      when && (here.pathname !== there.pathname || fileOf(here.search) !== fileOf(there.search)),
  );
  useEffect(() => {
    if (!when) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    const letGo = holdDraft();
    addEventListener("beforeunload", ask);
    return () => {
      letGo();
      removeEventListener("beforeunload", ask);
    };
  }, [when]);
  if (blocker.state !== "blocked") return null;
  return (
    <Confirm
      title="Leave without saving?"
      action="Discard and leave"
      danger
      onConfirm={() => blocker.proceed()}
      onClose={() => blocker.reset()}
    >
      <p>
        What you wrote in <span className="mono bidi">{plain(path, 80)}</span> is not saved. If you
        leave now, it is lost.
      </p>
    </Confirm>
  );
}

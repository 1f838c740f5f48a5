import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import type { PendingFollower } from "./followers";

const MAX_NAMED = 20;

interface AcceptConfirmationProps {
  selected: PendingFollower[];
  /** The part of the agents that the server chooses, in words. */
  part: string | null;
  isRemoval: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

/** Says for how many agents an update is accepted, and whose override it drops. */
export function AcceptConfirmation({
  selected,
  part,
  isRemoval,
  onConfirm,
  onClose,
}: AcceptConfirmationProps) {
  const overridden = selected.filter((agent) => agent.overridden);
  const count =
    selected.length === 1 ? "1 agent" : `${selected.length.toLocaleString("en")} agents`;
  const names = overridden.slice(0, MAX_NAMED).map(({ name }) => escapeText(name, 60));
  const verb = selected.length === 1 ? "waits" : "wait";
  const title = isRemoval ? "Accept removal" : "Accept update";
  const more = overridden.length - names.length;
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <span className="grow" />
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" onClick={onConfirm}>
            {title}
          </Button>
        </>
      }
    >
      {part ? (
        <p>
          {isRemoval ? "The file is removed for" : "The update goes to"} {part} that inherit the
          file. {count} {verb} for it.
        </p>
      ) : (
        <p>
          {isRemoval ? `The file is removed for ${count}.` : `The update goes to ${count}.`} It can
          be rolled back for all together.
        </p>
      )}
      {overridden.length > 0 && (
        <p>
          {part ? "Overrides are removed, if chosen, of " : "Overrides are removed of "}
          <span className="bidi">{names.join(", ")}</span>
          {more > 0 && ` and ${more.toLocaleString("en")} more`}.
        </p>
      )}
    </Dialog>
  );
}

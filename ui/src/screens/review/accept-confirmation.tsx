import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import type { PendingFollower } from "./followers";

const MAX_NAMED = 20;

interface AcceptConfirmationProps {
  selected: PendingFollower[];
  /** Agents of the selection that the server chooses: a number or a share in words. */
  part: string | null;
  onConfirm: () => void;
  onClose: () => void;
}

/** Says for how many agents an update is accepted, and whose override it drops. */
export function AcceptConfirmation({
  selected,
  part,
  onConfirm,
  onClose,
}: AcceptConfirmationProps) {
  const overridden = selected.filter((agent) => agent.overridden);
  const count =
    selected.length === 1 ? "1 agent" : `${selected.length.toLocaleString("en")} agents`;
  const names = overridden.slice(0, MAX_NAMED).map(({ name }) => escapeText(name, 60));
  const more = overridden.length - names.length;
  return (
    <Dialog
      title="Accept update"
      onClose={onClose}
      footer={
        <>
          <span className="grow" />
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" onClick={onConfirm}>
            Accept update
          </Button>
        </>
      }
    >
      <p>{part ? `${part} of ${count} get the update.` : `${count} get the update.`}</p>
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

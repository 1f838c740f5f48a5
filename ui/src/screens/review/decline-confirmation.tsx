import { useState } from "react";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";

interface DeclineConfirmationProps {
  /** Agents that are offered the update. */
  count: number;
  onConfirm: (reason: string) => void;
  onClose: () => void;
}

/** Asks why an update is declined for all agents that are offered it. */
export function DeclineConfirmation({ count, onConfirm, onClose }: DeclineConfirmationProps) {
  const [reason, setReason] = useState("");
  const agents = count === 1 ? "1 agent keeps" : `${count.toLocaleString("en")} agents keep`;
  return (
    <Dialog
      title="Decline update"
      onClose={onClose}
      onSubmit={() => {
        if (reason.trim()) onConfirm(reason.trim());
      }}
      footer={
        <>
          <span className="grow" />
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="danger" type="submit" disabled={!reason.trim()}>
            Decline update
          </Button>
        </>
      }
    >
      <p>{agents} what is served now. This update is no longer offered; the next one is.</p>
      <label className="stack tight">
        Reason
        <input
          className="input"
          value={reason}
          maxLength={1000}
          required
          onChange={(event) => setReason(event.target.value)}
        />
      </label>
    </Dialog>
  );
}

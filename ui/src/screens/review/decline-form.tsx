import { useState } from "react";
import { Button } from "../../components/button";

interface DeclineFormProps {
  busy: boolean;
  onDecline: (reason: string) => void;
  onCancel: () => void;
}

/** Asks why an update is declined. */
export function DeclineForm({ busy, onDecline, onCancel }: DeclineFormProps) {
  const [reason, setReason] = useState("");
  return (
    <form
      className="row grow wrap"
      onSubmit={(event) => {
        event.preventDefault();
        if (reason.trim()) onDecline(reason.trim());
      }}
    >
      <label className="row grow">
        Reason
        <input
          className="input grow"
          value={reason}
          maxLength={1000}
          required
          onChange={(event) => setReason(event.target.value)}
        />
      </label>
      <Button onClick={onCancel}>Cancel</Button>
      <Button kind="danger" type="submit" busy={busy} disabled={!reason.trim()}>
        Decline update
      </Button>
    </form>
  );
}

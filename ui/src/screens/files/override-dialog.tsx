// Asked before an inherited file becomes an agent's own.

import { useState } from "react";
import type { Place } from "../../api/files";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { type Question, wontAskAgain } from "./use-save-file";

interface QuestionDialogProps {
  question: Question;
  place: Place;
  path: string;
  onYes: () => void;
  onClose: () => void;
}

export function QuestionDialog({ question, place, path, onYes, onClose }: QuestionDialogProps) {
  const [isLast, setLast] = useState(false);
  const name = plain(path, 80);
  if (question === "pinned") {
    return (
      <Confirm
        title={`Override the pinned ${name}?`}
        action="Override and save"
        onConfirm={onYes}
        onClose={onClose}
      >
        <p>
          This file is pinned: what the agent is served was reviewed. Your text takes its place for
          this agent alone, without a review.
        </p>
        <p>
          The pin stays beneath. Reverting goes back to it, and accepting an update drops your text.
        </p>
      </Confirm>
    );
  }
  return (
    <Confirm
      title={`Make ${name} this agent’s own?`}
      action="Override and save"
      onConfirm={() => {
        if (isLast) wontAskAgain(place);
        onYes();
      }}
      onClose={onClose}
    >
      <p>
        So far it is inherited. Your text will be this agent’s alone: its siblings keep inheriting,
        and later edits beneath reach them but no longer this agent.
      </p>
      <p className="soft">Revert takes your text away again and goes back to what lies beneath.</p>
      <label className="check">
        <input
          type="checkbox"
          checked={isLast}
          onChange={(event) => setLast(event.target.checked)}
        />
        Don’t ask again for this agent
      </label>
    </Confirm>
  );
}

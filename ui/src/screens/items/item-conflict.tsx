import type { Item } from "../../api/items";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { SideBySide } from "../../editor";

interface ItemConflictProps {
  theirs: Item;
  mine: string;
  busy: boolean;
  onOverwrite: () => void;
  onDiscardMine: () => void;
}

/** Conflict between the stored value and the draft, until one is chosen. */
export function ItemConflict({
  theirs,
  mine,
  busy,
  onOverwrite,
  onDiscardMine,
}: ItemConflictProps) {
  return (
    <section className="stack" aria-label="Conflict">
      <h2 className="bidi">{escapeText(theirs.key, 256)}</h2>
      <div className="notice update" role="alert">
        <div className="grow">
          <strong>Version {theirs.version} was saved while you were editing.</strong>
          <div>
            Their version is on the left, yours on the right. Their version stays in the history.
          </div>
        </div>
      </div>
      <SideBySide
        left={{ label: "Theirs", text: theirs.value }}
        right={{ label: "Yours", text: mine }}
      />
      <div className="row wrap">
        <Button kind="primary" busy={busy} onClick={onOverwrite}>
          Overwrite with my version
        </Button>
        <Button onClick={onDiscardMine}>Use their version</Button>
      </div>
    </section>
  );
}

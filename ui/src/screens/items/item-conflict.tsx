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

/** Two wrote at once: both texts are here until somebody has chosen. */
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
          <strong>Somebody else wrote version {theirs.version} while you were writing.</strong>
          <div>
            Theirs is on the left, yours on the right. Whichever you keep, theirs stays in the
            history.
          </div>
        </div>
      </div>
      <SideBySide
        left={{ label: "Theirs", text: theirs.value }}
        right={{ label: "Yours", text: mine }}
      />
      <div className="row wrap">
        <Button kind="primary" busy={busy} onClick={onOverwrite}>
          Write mine over theirs
        </Button>
        <Button onClick={onDiscardMine}>Take theirs</Button>
      </div>
    </section>
  );
}

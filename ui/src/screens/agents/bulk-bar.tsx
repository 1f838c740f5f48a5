// Actions on the selected agents.

import { Tags, Trash2, User, X } from "lucide-react";
import { useState } from "react";
import { Button } from "../../components/button";
import { type Action, ChangeAgents } from "./change-agents";

interface BulkBarProps {
  selected: ReadonlySet<string>;
  /** Ids of the agents that the filters show. */
  shown: readonly string[];
  onSelect: (ids: ReadonlySet<string>) => void;
}

const MAX_SELECTED = 5_000;

export function BulkBar({ selected, shown, onSelect }: BulkBarProps) {
  const [action, setAction] = useState<Action | null>(null);
  const clear = () => onSelect(new Set());
  const count = selected.size;
  if (count === 0) return null;
  const isTooMany = count > MAX_SELECTED;
  const open = (chosen: Action) => ({
    small: true,
    disabled: isTooMany,
    onClick: () => setAction(chosen),
  });
  return (
    <section className="row wrap bulk-bar" aria-label="Selected agents">
      <strong role="status">{count.toLocaleString("en")} selected</strong>
      {isTooMany && <span className="faint">At most 5,000 at once</span>}
      {count < shown.length && (
        <Button small kind="plain" onClick={() => onSelect(new Set(shown))}>
          Select all {shown.length.toLocaleString("en")}
        </Button>
      )}
      <span className="grow" />
      <Button {...open("template")}>Move…</Button>
      <Button {...open("human")} icon={User}>
        Pair…
      </Button>
      <Button {...open("tags")} icon={Tags}>
        Tag…
      </Button>
      <Button {...open("delete")} kind="danger" icon={Trash2}>
        Delete…
      </Button>
      <Button small kind="plain" icon={X} aria-label="Clear selection" onClick={clear} />
      {action && (
        <ChangeAgents
          action={action}
          ids={[...selected]}
          onDone={() => {
            setAction(null);
            clear();
          }}
          onClose={() => setAction(null)}
        />
      )}
    </section>
  );
}

// One set of items: the list with previews, and the one that is open.

import { useQuery } from "@tanstack/react-query";
import { ArrowLeft, Package, Plus } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "react-router";
import { type ItemRow, itemsQuery } from "../../api/items";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { Empty, Shown } from "../../components/query-states";
import { Time } from "../../components/time";
import { ItemPage } from "./item-page";
import { NewItem } from "./new-item";

/** Which item is open stands in the address. */
export function useOpenItem(): [string | null, (key: string | null) => void] {
  const [given, setGiven] = useSearchParams();
  const open = (key: string | null) =>
    setGiven((was) => {
      const next = new URLSearchParams(was);
      if (key === null) next.delete("key");
      else next.set("key", key);
      return next;
    });
  return [given.get("key"), open];
}

export function ItemsOf({ agentId }: { agentId: string }) {
  const [key, open] = useOpenItem();
  const [making, setMaking] = useState(false);
  const items = useQuery(itemsQuery(agentId));
  return (
    <>
      <div className={key === null ? "two-panes framed" : "two-panes framed chosen"}>
        <Shown query={items}>
          {(found) => (
            <Listed rows={found} open={open} chosen={key} onNew={() => setMaking(true)} />
          )}
        </Shown>
        <div className="pane">
          {key === null ? (
            <p className="faint">Choose an item to read or change it.</p>
          ) : (
            <>
              <Button
                className="only-small"
                kind="plain"
                small
                icon={ArrowLeft}
                onClick={() => open(null)}
              >
                All items
              </Button>
              <ItemPage agentId={agentId} itemKey={key} key={key} onGone={() => open(null)} />
            </>
          )}
        </div>
      </div>
      {making && (
        <NewItem agentId={agentId} onClose={() => setMaking(false)} onMade={(made) => open(made)} />
      )}
    </>
  );
}

interface ListedProps {
  rows: ItemRow[];
  chosen: string | null;
  open: (key: string) => void;
  onNew: () => void;
}

function Listed({ rows, chosen, open, onNew }: ListedProps) {
  const [sought, setSought] = useState("");
  const found = rows.filter(({ key }) => key.toLowerCase().includes(sought.toLowerCase()));
  return (
    <div className="stack pane-list">
      <div className="row">
        <div className="grow">
          <SearchField label="Find a key" value={sought} onChange={setSought} />
        </div>
        <Button icon={Plus} onClick={onNew}>
          New item
        </Button>
      </div>
      {rows.length === 0 && (
        <Empty icon={Package} title="No items yet">
          <p>
            Agents write them with <code>workspace_write</code>: a list, a decision, a bit of JSON.
            You can write one too.
          </p>
        </Empty>
      )}
      <ul className="rows tall" aria-label="Items">
        {found.slice(0, 500).map((row) => (
          <li key={row.key}>
            <button
              type="button"
              className={row.key === chosen ? "on" : ""}
              aria-current={row.key === chosen || undefined}
              onClick={() => open(row.key)}
            >
              <Row row={row} />
            </button>
          </li>
        ))}
      </ul>
      {found.length > 500 && (
        <p className="faint">and {found.length - 500} more: search for them</p>
      )}
      {rows.length > 0 && found.length === 0 && <p className="faint">No key has that in it.</p>}
    </div>
  );
}

function Row({ row }: { row: ItemRow }) {
  return (
    <span className="stack tight grow">
      <span className="row">
        <strong className="cut bidi">{plain(row.key)}</strong>
        <span className="faint end">
          <Time at={row.updatedAt} />
        </span>
      </span>
      <span className="cut faint bidi">
        {plain(row.preview.replace(/\s+/g, " "), 120) || "(empty)"}
      </span>
    </span>
  );
}

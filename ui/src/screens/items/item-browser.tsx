// One set of items: list and selected item.

import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { ArrowLeft, Package, Plus } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { useSearchParams } from "react-router";
import { type ItemRow, itemsQuery } from "../../api/items";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { PagedRows } from "../../components/paged-rows";
import { EmptyState } from "../../components/query-states";
import { Time } from "../../components/time";
import { ItemPage } from "./item-page";
import { NewItem } from "./new-item";

/** Key of the open item, kept in the URL. */
export function useOpenItem(): [string | null, (key: string | null) => void] {
  const [params, setParams] = useSearchParams();
  const open = (key: string | null) =>
    setParams((previous) => {
      const next = new URLSearchParams(previous);
      if (key === null) next.delete("key");
      else next.set("key", key);
      return next;
    });
  return [params.get("key"), open];
}

export function ItemBrowser({ agentId }: { agentId: string }) {
  const [key, open] = useOpenItem();
  const [isCreating, setCreating] = useState(false);
  const [prefix, setPrefix] = useState("");
  const items = useInfiniteQuery({
    ...itemsQuery(agentId, useDeferredValue(prefix)),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <div className={key === null ? "two-panes framed" : "two-panes framed selected"}>
        <div className="stack pane-list">
          <div className="row">
            <div className="grow">
              <SearchField label="Filter by start of key" value={prefix} onChange={setPrefix} />
            </div>
            <Button icon={Plus} onClick={() => setCreating(true)}>
              New item
            </Button>
          </div>
          <PagedRows query={items} noun="items">
            {(rows) => (
              <ItemList rows={rows} open={open} selected={key} isFiltered={prefix !== ""} />
            )}
          </PagedRows>
        </div>
        <div className="pane">
          {key === null ? (
            <p className="faint">Select an item.</p>
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
              <ItemPage agentId={agentId} itemKey={key} key={key} onDeleted={() => open(null)} />
            </>
          )}
        </div>
      </div>
      {isCreating && (
        <NewItem
          agentId={agentId}
          onClose={() => setCreating(false)}
          onCreated={(createdKey) => open(createdKey)}
        />
      )}
    </>
  );
}

interface ItemListProps {
  rows: ItemRow[];
  selected: string | null;
  open: (key: string) => void;
  isFiltered: boolean;
}

function ItemList({ rows, selected, open, isFiltered }: ItemListProps) {
  return (
    <>
      {rows.length === 0 && !isFiltered && (
        <EmptyState icon={Package} title="No items yet">
          <p>
            Agents write items with <code>workspace_write</code>. You can also create one here.
          </p>
        </EmptyState>
      )}
      <ul className="rows tall" aria-label="Items">
        {rows.map((row) => (
          <li key={row.key}>
            <button
              type="button"
              className={row.key === selected ? "active" : ""}
              aria-current={row.key === selected || undefined}
              onClick={() => open(row.key)}
            >
              <Row row={row} />
            </button>
          </li>
        ))}
      </ul>
      {rows.length === 0 && isFiltered && <p className="faint">No matching keys</p>}
    </>
  );
}

function Row({ row }: { row: ItemRow }) {
  return (
    <span className="stack tight grow">
      <span className="row">
        <strong className="truncate bidi">{escapeText(row.key)}</strong>
        <span className="faint end">
          <Time at={row.updatedAt} />
        </span>
      </span>
      <span className="truncate faint bidi">
        {escapeText(row.preview.replace(/\s+/g, " "), 120) || "(empty)"}
      </span>
    </span>
  );
}

// One item: value, details and earlier versions.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Save, Trash2 } from "lucide-react";
import { useId, useState } from "react";
import { deleteItem, type Item, itemQuery, putItem } from "../../api/items";
import { Problem, toSentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { PrincipalName } from "../../components/principal-name";
import { PropertyList } from "../../components/property-list";
import { QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { useUnsavedDraft } from "../../components/unsaved-drafts";
import { ItemConflict } from "./item-conflict";
import { ItemVersions } from "./item-versions";

interface ItemPageProps {
  agentId: string;
  itemKey: string;
  onDeleted: () => void;
}

export function ItemPage(props: ItemPageProps) {
  const [isDeleting, setDeleting] = useState(false);
  const item = useQuery({ ...itemQuery(props.agentId, props.itemKey), enabled: !isDeleting });
  return (
    <QueryResult query={item}>
      {(data) => <ItemEditor {...props} current={data} onDeleting={setDeleting} />}
    </QueryResult>
  );
}

interface ItemEditorState {
  current: Item;
  /** Pauses queries for the item while it is being deleted. */
  onDeleting: (isDeleting: boolean) => void;
}

const isConflict = (error: unknown) =>
  error instanceof Problem && (error.code === "workspace_conflict" || error.status === 412);

/** Editor of an item. The draft keeps its base version; newer versions are reported. */
function ItemEditor({
  agentId,
  itemKey,
  current,
  onDeleted,
  onDeleting,
}: ItemPageProps & ItemEditorState) {
  const [base, setBase] = useState(current);
  const [draft, setDraft] = useState(current.value);
  const [isConfirming, setConfirming] = useState(false);
  const changed = draft !== base.value;
  if (!changed && current.version !== base.version) {
    setBase(current);
    setDraft(current.value);
  }
  useUnsavedDraft(changed && !isConfirming, itemKey);
  const queries = useQueryClient();
  const refreshItems = () => queries.invalidateQueries({ queryKey: ["items"] });
  const { queryKey } = itemQuery(agentId, itemKey);
  const save = useMutation({
    mutationFn: (etag: string) => putItem(agentId, itemKey, draft, etag),
    meta: { skipErrorToast: true },
    // A response from before the write would restore the old value.
    onMutate: () => queries.cancelQueries({ queryKey }),
    onSuccess: ({ item, warning }) => {
      queries.setQueryData(queryKey, item);
      setBase(item);
      setDraft(item.value);
      toast(warning ?? "Item saved");
    },
    onError: (error) => isConflict(error) || toast(toSentence(error), true),
    onSettled: refreshItems,
  });
  const conflicting = isConflict(save.error) && current.version !== base.version;
  if (conflicting) {
    return (
      <ItemConflict
        theirs={current}
        mine={draft}
        busy={save.isPending}
        onOverwrite={() => save.mutate(current.etag)}
        onDiscardMine={() => {
          save.reset();
          setBase(current);
          setDraft(current.value);
        }}
      />
    );
  }
  return (
    <div className="stack">
      <header className="row wrap">
        <h2 className="grow bidi">{escapeText(itemKey, 256)}</h2>
        <Button
          kind="primary"
          icon={Save}
          disabled={!changed}
          busy={save.isPending}
          onClick={() => save.mutate(base.etag)}
        >
          Save
        </Button>
        <Button
          kind="danger"
          icon={Trash2}
          aria-label="Delete item"
          onClick={() => setConfirming(true)}
        />
      </header>
      {changed && current.version !== base.version && (
        <p className="notice update" role="status">
          Version {current.version} was saved meanwhile. Saving will show both versions.
        </p>
      )}
      <ValueField
        value={draft}
        onChange={setDraft}
        onSave={() => changed && save.mutate(base.etag)}
      />
      <ItemDetails item={current} />
      <ItemVersions agentId={agentId} item={current} onRestore={setDraft} />
      {isConfirming && (
        <DeleteItemDialog
          agentId={agentId}
          item={current}
          onClose={() => setConfirming(false)}
          onDeleting={onDeleting}
          onDeleted={() => {
            onDeleted();
            void refreshItems();
          }}
        />
      )}
    </div>
  );
}

interface ValueFieldProps {
  value: string;
  onChange: (value: string) => void;
  onSave: () => void;
}

function ValueField({ value, onChange, onSave }: ValueFieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>Value</label>
      <textarea
        id={id}
        className="input mono item-value"
        spellCheck={false}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== "s" || !(event.metaKey || event.ctrlKey)) return;
          event.preventDefault();
          onSave();
        }}
      />
    </div>
  );
}

const ItemDetails = ({ item }: { item: Item }) => (
  <PropertyList
    items={[
      [
        "Created",
        <span key="created">
          by <PrincipalName id={item.createdBy} />, <Time at={item.createdAt} />
        </span>,
      ],
      ["Updated", <Time key="updated" at={item.updatedAt} />],
      ["Version", item.version],
    ]}
  />
);

interface DeleteItemProps {
  agentId: string;
  item: Item;
  onClose: () => void;
  onDeleting: (isDeleting: boolean) => void;
  onDeleted: () => void;
}

function DeleteItemDialog({ agentId, item, onClose, onDeleting, onDeleted }: DeleteItemProps) {
  const remove = useMutation({
    mutationFn: () => deleteItem(agentId, item.key, item.etag),
    onMutate: () => onDeleting(true),
    onError: () => onDeleting(false),
    onSuccess: () => {
      toast("Item deleted");
      onDeleted();
    },
    onSettled: onClose,
  });
  return (
    <Confirm
      title="Delete item?"
      action="Delete"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{escapeText(item.key, 120)}</strong> will be deleted for all agents that share it.
      </p>
    </Confirm>
  );
}

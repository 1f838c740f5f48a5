// One item: its text to read and to change, who made it, and what it was before.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Save, Trash2 } from "lucide-react";
import { useId, useState } from "react";
import { deleteItem, type Item, itemQuery, putItem } from "../../api/items";
import { Problem, sentence } from "../../api/problem";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Who } from "../../components/principal-name";
import { Facts } from "../../components/property-list";
import { Shown } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { ItemConflict } from "./item-conflict";
import { ItemVersions } from "./item-versions";

interface ItemPageProps {
  agentId: string;
  itemKey: string;
  onGone: () => void;
}

export function ItemPage(props: ItemPageProps) {
  const [isGoing, setGoing] = useState(false);
  const item = useQuery({ ...itemQuery(props.agentId, props.itemKey), enabled: !isGoing });
  return (
    <Shown query={item}>{(found) => <Editing {...props} now={found} onGoing={setGoing} />}</Shown>
  );
}

interface Held {
  now: Item;
  /** It is being deleted: nothing more is asked about it. */
  onGoing: (isGoing: boolean) => void;
}

const isConflict = (error: unknown) =>
  error instanceof Problem && (error.code === "workspace_conflict" || error.status === 412);

/** What is typed rests on the version it began from; what comes meanwhile is said, never lost. */
function Editing({ agentId, itemKey, now, onGone, onGoing }: ItemPageProps & Held) {
  const [base, setBase] = useState(now);
  const [draft, setDraft] = useState(now.value);
  const [asking, setAsking] = useState(false);
  const changed = draft !== base.value;
  if (!changed && now.version !== base.version) {
    setBase(now);
    setDraft(now.value);
  }
  const queries = useQueryClient();
  const settle = () => queries.invalidateQueries({ queryKey: ["items"] });
  const save = useMutation({
    mutationFn: (etag: string) => putItem(agentId, itemKey, draft, etag),
    meta: { quiet: true },
    onSuccess: ({ item, warning }) => {
      setBase(item);
      setDraft(item.value);
      toast(warning ?? "The item is written.");
    },
    onError: (error) => isConflict(error) || toast(sentence(error), true),
    onSettled: settle,
  });
  const conflicting = isConflict(save.error) && now.version !== base.version;
  if (conflicting) {
    return (
      <ItemConflict
        theirs={now}
        mine={draft}
        busy={save.isPending}
        onKeepMine={() => save.mutate(now.etag)}
        onTakeTheirs={() => {
          save.reset();
          setBase(now);
          setDraft(now.value);
        }}
      />
    );
  }
  return (
    <div className="stack">
      <header className="row wrap">
        <h2 className="grow bidi">{plain(itemKey, 256)}</h2>
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
          aria-label="Delete the item"
          onClick={() => setAsking(true)}
        />
      </header>
      {changed && now.version !== base.version && (
        <p className="notice update" role="status">
          Somebody wrote version {now.version} meanwhile. Saving will show both texts.
        </p>
      )}
      <Value value={draft} onChange={setDraft} onSave={() => changed && save.mutate(base.etag)} />
      <About item={now} />
      <ItemVersions agentId={agentId} item={now} onTake={setDraft} />
      {asking && (
        <Deleting
          agentId={agentId}
          item={now}
          onClose={() => setAsking(false)}
          onGoing={onGoing}
          onGone={() => {
            onGone();
            void settle();
          }}
        />
      )}
    </div>
  );
}

interface ValueProps {
  value: string;
  onChange: (value: string) => void;
  onSave: () => void;
}

function Value({ value, onChange, onSave }: ValueProps) {
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

const About = ({ item }: { item: Item }) => (
  <Facts
    of={[
      [
        "First written",
        <span key="created">
          by <Who id={item.createdBy} />, <Time at={item.createdAt} />
        </span>,
      ],
      ["Last written", <Time key="updated" at={item.updatedAt} />],
      ["Version", item.version],
    ]}
  />
);

interface DeletingProps {
  agentId: string;
  item: Item;
  onClose: () => void;
  onGoing: (isGoing: boolean) => void;
  onGone: () => void;
}

function Deleting({ agentId, item, onClose, onGoing, onGone }: DeletingProps) {
  const gone = useMutation({
    mutationFn: () => deleteItem(agentId, item.key, item.etag),
    onMutate: () => onGoing(true),
    onError: () => onGoing(false),
    onSuccess: () => {
      toast("The item is deleted.");
      onGone();
    },
    onSettled: onClose,
  });
  return (
    <Confirm
      title="Delete the item?"
      action="Delete"
      danger
      busy={gone.isPending}
      onConfirm={() => gone.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{plain(item.key, 120)}</strong> will be gone for all who share it. Its versions stay
        in the history.
      </p>
    </Confirm>
  );
}

// Items of the account, by owner.

import { useQuery } from "@tanstack/react-query";
import { Package } from "lucide-react";
import { useId } from "react";
import { useSearchParams } from "react-router";
import { agentRecordsQuery } from "../../api/agent-records";
import { peopleQuery } from "../../api/people";
import { isAdmin } from "../../api/session";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { useSession } from "../../layout/session-context";
import { ItemBrowser } from "./item-browser";
import { type ItemSet, itemSetsFor } from "./item-sets";

export default function Items() {
  const session = useSession();
  const people = useQuery(peopleQuery);
  const agents = useQuery(agentRecordsQuery);
  return (
    <Screen title="Items" subtitle="Keyed texts that agents share.">
      <QueryResult query={agents}>
        {(records) => (
          <ItemSets
            sets={itemSetsFor(records, people.data ?? [], session.person?.id, isAdmin(session))}
          />
        )}
      </QueryResult>
    </Screen>
  );
}

function ItemSets({ sets }: { sets: ItemSet[] }) {
  const [params, setParams] = useSearchParams();
  const selected = sets.find(({ id }) => id === params.get("of")) ?? sets[0];
  if (!selected) {
    return (
      <EmptyState icon={Package} title="No agents yet">
        <p>
          Agents write items with <code>workspace_write</code>. A person’s private agents share one
          set; a shared agent has its own.
        </p>
      </EmptyState>
    );
  }
  return (
    <>
      <div className="row wrap">
        <ItemSetSelect
          sets={sets}
          selected={selected.id}
          onSelect={(id) => setParams({ of: id }, { replace: true })}
        />
        <p className="soft grow">{describeSet(selected)}</p>
      </div>
      <ItemBrowser agentId={selected.agentId} key={selected.id} />
    </>
  );
}

function describeSet({ kind, name, agents }: ItemSet): string {
  const owner = escapeText(name, 60);
  if (kind === "shared") return `Items of the shared agent ${owner}.`;
  const count = agents === 1 ? "1 private agent" : `${agents} private agents`;
  return `Shared by ${count} of ${owner}.`;
}

interface ItemSetSelectProps {
  sets: ItemSet[];
  selected: string;
  onSelect: (id: string) => void;
}

function ItemSetSelect({ sets, selected, onSelect }: ItemSetSelectProps) {
  const id = useId();
  const group = (kind: ItemSet["kind"], label: string) => {
    const matching = sets.filter((set) => set.kind === kind);
    return (
      matching.length > 0 && (
        <optgroup label={label}>
          {matching.map((set) => (
            <option key={set.id} value={set.id}>
              {escapeText(set.name, 60)}
            </option>
          ))}
        </optgroup>
      )
    );
  };
  return (
    <div className="row owner-select">
      <label className="label" htmlFor={id}>
        Owner
      </label>
      <select
        id={id}
        className="input"
        value={selected}
        onChange={(event) => onSelect(event.target.value)}
      >
        {group("person", "People")}
        {group("shared", "Shared agents")}
      </select>
    </div>
  );
}

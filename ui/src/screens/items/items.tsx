// Items of the whole account: first whose, then which.

import { useQuery } from "@tanstack/react-query";
import { Package } from "lucide-react";
import { useId } from "react";
import { useSearchParams } from "react-router";
import { agentRecordsQuery } from "../../api/agent-records";
import { peopleQuery } from "../../api/people";
import { isAdmin } from "../../api/session";
import { plain } from "../../components/escape-text";
import { Empty, Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { useSession } from "../../layout/session-context";
import { ItemsOf } from "./item-browser";
import { type ItemShelf, shelvesOf } from "./item-sets";

export default function Items() {
  const session = useSession();
  const people = useQuery(peopleQuery);
  const agents = useQuery(agentRecordsQuery);
  return (
    <Screen title="Items" under="Texts under keys that agents share with one another.">
      <Shown query={agents}>
        {(found) => (
          <Shelves
            shelves={shelvesOf(found, people.data ?? [], session.person?.id, isAdmin(session))}
          />
        )}
      </Shown>
    </Screen>
  );
}

function Shelves({ shelves }: { shelves: ItemShelf[] }) {
  const [given, setGiven] = useSearchParams();
  const chosen = shelves.find(({ id }) => id === given.get("of")) ?? shelves[0];
  if (!chosen) {
    return (
      <Empty icon={Package} title="No agents yet">
        <p>
          Agents keep items with <code>workspace_write</code>. Private agents of a person share one
          set; a shared agent has its own. Make an agent first.
        </p>
      </Empty>
    );
  }
  return (
    <>
      <div className="row wrap">
        <Choice
          shelves={shelves}
          chosen={chosen.id}
          onChoose={(id) => setGiven({ of: id }, { replace: true })}
        />
        <p className="soft grow">{meaning(chosen)}</p>
      </div>
      <ItemsOf agentId={chosen.agentId} key={chosen.id} />
    </>
  );
}

function meaning({ kind, name, agents }: ItemShelf): string {
  const who = plain(name, 60);
  if (kind === "shared") return `${who} is shared and has these to itself.`;
  const count = agents === 1 ? "One private agent uses" : `${agents} private agents share`;
  return `${count} this one set: what one writes, every private agent of ${who} reads.`;
}

interface ChoiceProps {
  shelves: ItemShelf[];
  chosen: string;
  onChoose: (id: string) => void;
}

function Choice({ shelves, chosen, onChoose }: ChoiceProps) {
  const id = useId();
  const group = (kind: ItemShelf["kind"], label: string) => {
    const found = shelves.filter((each) => each.kind === kind);
    return (
      found.length > 0 && (
        <optgroup label={label}>
          {found.map((each) => (
            <option key={each.id} value={each.id}>
              {plain(each.name, 60)}
            </option>
          ))}
        </optgroup>
      )
    );
  };
  return (
    <div className="row whose">
      <label className="label" htmlFor={id}>
        Whose
      </label>
      <select
        id={id}
        className="input"
        value={chosen}
        onChange={(event) => onChoose(event.target.value)}
      >
        {group("person", "Private agents of")}
        {group("shared", "Shared agents")}
      </select>
    </div>
  );
}

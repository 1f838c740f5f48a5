// The items that an agent shares, and with whom.

import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";
import { agentRecordQuery, personOf } from "../../api/agent-records";
import { Who } from "../../components/principal-name";
import { Shown } from "../../components/query-states";
import { useTitle } from "../../components/screen";
import { ItemsOf } from "./item-browser";

export default function AgentItems() {
  const { id = "" } = useParams();
  useTitle("Items");
  return (
    <Shown query={useQuery(agentRecordQuery(id))}>
      {(agent) => (
        <section className="stack" aria-label="Items">
          <p className="soft">
            {agent.isShared ? (
              "These items are this shared agent’s own. Private agents reach them only by publishing."
            ) : (
              <>
                All private agents of <Whose person={personOf(agent)} /> share these items: what one
                writes, the others read.
              </>
            )}
          </p>
          <ItemsOf agentId={agent.id} />
        </section>
      )}
    </Shown>
  );
}

const Whose = ({ person }: { person: string | null }) =>
  person ? <Who id={person} /> : <>whoever asks, here you</>;

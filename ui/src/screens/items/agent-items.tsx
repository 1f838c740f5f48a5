// The items that an agent shares, and with whom.

import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";
import { agentRecordQuery, itemOwnerOf } from "../../api/agent-records";
import { PrincipalName } from "../../components/principal-name";
import { QueryResult } from "../../components/query-states";
import { useTitle } from "../../components/screen";
import { ItemBrowser } from "./item-browser";

export default function AgentItems() {
  const { id = "" } = useParams();
  useTitle("Items");
  return (
    <QueryResult query={useQuery(agentRecordQuery(id))}>
      {(agent) => (
        <section className="stack" aria-label="Items">
          <p className="soft">
            {agent.isShared ? (
              "These items are this shared agent’s own. Private agents reach them only by publishing."
            ) : (
              <>
                All private agents of <OwnerName person={itemOwnerOf(agent)} /> share these items:
                what one writes, the others read.
              </>
            )}
          </p>
          <ItemBrowser agentId={agent.id} />
        </section>
      )}
    </QueryResult>
  );
}

const OwnerName = ({ person }: { person: string | null }) =>
  person ? <PrincipalName id={person} /> : <>whoever asks, here you</>;

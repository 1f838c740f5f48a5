// Items tab of an agent.

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
              "This shared agent’s own items. Private agents can add to them only by publishing."
            ) : (
              <>
                Shared by all private agents of <OwnerName person={itemOwnerOf(agent)} />.
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
  person ? <PrincipalName id={person} /> : <>the caller (you)</>;

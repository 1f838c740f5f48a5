// Somebody by their id: a person, an agent, or a key that a service came with.

import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { agentRecordQuery } from "../api/agent-records";
import { peopleQuery } from "../api/people";
import { plain } from "./escape-text";

export function Who({ id }: { id: string | null | undefined }) {
  const people = useQuery(peopleQuery);
  if (!id) return <span className="faint">—</span>;
  if (id.startsWith("agt_")) return <AgentName id={id} />;
  const person = people.data?.find((one) => one.id === id);
  if (person) return <span className="bidi">{plain(person.name, 60)}</span>;
  return <code className="faint">{plain(id, 40)}</code>;
}

/** An agent's name, linked to it; its id where it is gone. */
export function AgentName({ id, linked = true }: { id: string; linked?: boolean }) {
  const agent = useQuery({ ...agentRecordQuery(id), staleTime: 60_000 });
  const name = agent.data ? plain(agent.data.name, 60) : plain(id, 40);
  if (!agent.data || !linked) return <span className="bidi">{name}</span>;
  return (
    <Link className="bidi" to={`/agents/${encodeURIComponent(id)}`}>
      {name}
    </Link>
  );
}

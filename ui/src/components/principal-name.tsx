// Name of a principal by id: a person, an agent, or a service key.

import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { agentRecordQuery } from "../api/agent-records";
import { peopleQuery } from "../api/people";
import { escapeText } from "./escape-text";

export function PrincipalName({ id }: { id: string | null | undefined }) {
  const people = useQuery(peopleQuery);
  if (!id) return <span className="faint">—</span>;
  if (id.startsWith("agt_")) return <AgentName id={id} />;
  const person = people.data?.find((candidate) => candidate.id === id);
  if (person) return <span className="bidi">{escapeText(person.name, 60)}</span>;
  return <code className="faint">{escapeText(id, 40)}</code>;
}

/** An agent's name with a link; its id if the agent was deleted. */
export function AgentName({ id, isLink = true }: { id: string; isLink?: boolean }) {
  const agent = useQuery({ ...agentRecordQuery(id), staleTime: 60_000 });
  const name = agent.data ? escapeText(agent.data.name, 60) : escapeText(id, 40);
  if (!agent.data || !isLink) return <span className="bidi">{name}</span>;
  return (
    <Link className="bidi" to={`/agents/${encodeURIComponent(id)}`}>
      {name}
    </Link>
  );
}

// Whose items there are to look at: one set for each person, one for each shared agent.

import { type AgentRecord, personOf } from "../../api/agent-records";
import type { Person } from "../../api/people";

export interface ItemShelf {
  id: string;
  name: string;
  kind: "person" | "shared";
  /** Any agent by which these items can be reached. */
  agentId: string;
  agents: number;
}

/** The sets of items that somebody may see; members see their own and those of shared agents. */
export function shelvesOf(
  agents: AgentRecord[],
  people: Person[],
  me: string | undefined,
  seesAll: boolean,
): ItemShelf[] {
  const shared = agents.filter((agent) => agent.isShared).map(sharedShelf);
  const byPerson = new Map<string, AgentRecord[]>();
  for (const agent of agents) {
    const person = personOf(agent) ?? me;
    if (agent.isShared || !person || !(seesAll || person === me)) continue;
    byPerson.set(person, [...(byPerson.get(person) ?? []), agent]);
  }
  const names = new Map(people.map(({ id, name }) => [id, name]));
  const persons = [...byPerson].map(([person, theirs]) =>
    personShelf(person, names.get(person) ?? person, theirs),
  );
  const order = (one: ItemShelf, other: ItemShelf) =>
    Number(other.id === me) - Number(one.id === me) || one.name.localeCompare(other.name);
  return [...persons.sort(order), ...shared.sort(order)];
}

const sharedShelf = ({ id, name }: AgentRecord): ItemShelf => ({
  id,
  name,
  kind: "shared",
  agentId: id,
  agents: 1,
});

const personShelf = (id: string, name: string, agents: AgentRecord[]): ItemShelf => ({
  id,
  name,
  kind: "person",
  agentId: agents[0]?.id ?? "",
  agents: agents.length,
});

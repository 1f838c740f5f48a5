// Item sets: one per person and one per shared agent.

import { type AgentRecord, itemOwnerOf } from "../../api/agent-records";
import type { Person } from "../../api/people";

export interface ItemSet {
  id: string;
  name: string;
  kind: "person" | "shared";
  /** Any agent that gives access to these items. */
  agentId: string;
  agents: number;
}

/**
 * Item sets that a user may see; members see their own and those of shared agents. Agents without an
 * owner or human are open to owners and admins only, and then use the caller's items.
 */
export function itemSetsFor(
  agents: AgentRecord[],
  people: Person[],
  me: string | undefined,
  seesAll: boolean,
): ItemSet[] {
  const shared = agents.filter((agent) => agent.isShared).map(sharedItemSet);
  const byPerson = new Map<string, AgentRecord[]>();
  for (const agent of agents) {
    const person = itemOwnerOf(agent) ?? (seesAll ? me : undefined);
    if (agent.isShared || !person || !(seesAll || person === me)) continue;
    byPerson.set(person, [...(byPerson.get(person) ?? []), agent]);
  }
  const names = new Map(people.map(({ id, name }) => [id, name]));
  const personSets = [...byPerson].map(([person, agentsOfPerson]) =>
    personItemSet(person, names.get(person) ?? person, agentsOfPerson),
  );
  const compare = (a: ItemSet, b: ItemSet) =>
    Number(b.id === me) - Number(a.id === me) || a.name.localeCompare(b.name);
  return [...personSets.sort(compare), ...shared.sort(compare)];
}

const sharedItemSet = ({ id, name }: AgentRecord): ItemSet => ({
  id,
  name,
  kind: "shared",
  agentId: id,
  agents: 1,
});

const personItemSet = (id: string, name: string, agents: AgentRecord[]): ItemSet => ({
  id,
  name,
  kind: "person",
  agentId: agents[0]?.id ?? "",
  agents: agents.length,
});

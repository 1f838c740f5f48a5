// The people of the account, and what each may change of whom.

import { queryOptions } from "@tanstack/react-query";
import { all, api, graphql, type RequestBody, type ResponseBody, take } from "./client";
import { UpdateProfile } from "./graphql.generated";
import type { Session } from "./session";

export type Person = ResponseBody<"/v1/people/{id}">;
export type PersonGiven = RequestBody<"/v1/people", "post">;

export const ROLES = {
  owner: "All, owners and what they hold included",
  admin: "Agents, templates, reviews and these settings",
  member: "Reads all, answers for the agents that work for them",
} as const;

export const peopleQuery = queryOptions({
  queryKey: ["people"],
  queryFn: () =>
    all((cursor) => take(api.GET("/v1/people", { params: { query: { limit: 500, cursor } } }))),
});

export const addPerson = (body: PersonGiven) => take(api.POST("/v1/people", { body }));

export const changePerson = (id: string, body: PersonGiven) =>
  take(api.PATCH("/v1/people/{id}", { params: { path: { id } }, body }));

export const removePerson = (id: string) =>
  take(api.DELETE("/v1/people/{id}", { params: { path: { id } } }));

/** What anybody may change of themselves. */
export const changeOwnProfile = (
  id: string,
  { title, timezone, pronouns }: Pick<PersonGiven, "title" | "timezone" | "pronouns">,
) => graphql(UpdateProfile, { userId: id, input: { title, timezone, pronouns } });

/** Why somebody may not be changed or removed by whoever is at the desk; empty where they may. */
export function barsChange(session: Session, person: Person): string {
  if (session.role !== "owner" && session.role !== "admin") return "Only owners and admins may.";
  if (person.role === "owner" && session.role !== "owner") return "Only an owner changes owners.";
  return "";
}

export const isLastOwner = (people: Person[], person: Person) =>
  person.role === "owner" && people.filter(({ role }) => role === "owner").length === 1;

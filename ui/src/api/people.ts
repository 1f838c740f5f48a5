// People of the account, and who may change whom.

import { queryOptions } from "@tanstack/react-query";
import { api, fetchAllPages, graphql, type RequestBody, type ResponseBody, unwrap } from "./client";
import { UpdateProfile } from "./graphql.generated";
import { PAGE_SIZE, pagesQuery } from "./pages";
import type { Session } from "./session";

export type Person = ResponseBody<"/v1/people/{id}">;
export type PersonBody = RequestBody<"/v1/people", "post">;

export const ROLES = {
  owner: "Full access, including owners",
  admin: "Manages agents, templates, reviews and settings",
  member: "Reads templates and shared agents, decides for their own agents",
} as const;

export const peopleQuery = queryOptions({
  queryKey: ["people"],
  queryFn: () =>
    fetchAllPages((cursor) =>
      unwrap(api.GET("/v1/people", { params: { query: { limit: 500, cursor } } })),
    ),
});

/** People whose name or address has these words. */
export const peoplePagesQuery = (q: string) =>
  pagesQuery(["people", "pages", q], (cursor) =>
    unwrap(
      api.GET("/v1/people", { params: { query: { limit: PAGE_SIZE, cursor, ...(q && { q }) } } }),
    ),
  );

export const addPerson = (body: PersonBody) => unwrap(api.POST("/v1/people", { body }));

export const changePerson = (id: string, body: PersonBody) =>
  unwrap(api.PATCH("/v1/people/{id}", { params: { path: { id } }, body }));

/** Creates a one-time sign-in link for a person; earlier ones end. */
export const invitePerson = (id: string) =>
  unwrap(api.POST("/v1/people/{id}/invite", { params: { path: { id } } }));

export const removePerson = (id: string) =>
  unwrap(api.DELETE("/v1/people/{id}", { params: { path: { id } } }));

/** Changes the profile fields that people may edit themselves. */
export const changeOwnProfile = (
  id: string,
  { title, timezone, pronouns }: Pick<PersonBody, "title" | "timezone" | "pronouns">,
) => graphql(UpdateProfile, { userId: id, input: { title, timezone, pronouns } });

/** Why the caller may not change or remove a person; empty if allowed. */
export function changeBlockedReason(session: Session, person: Person): string {
  if (session.role !== "owner" && session.role !== "admin")
    return "Only owners and admins can do this.";
  if (person.role === "owner" && session.role !== "owner") return "Only owners can change owners.";
  return "";
}

/** Number of owners of the account. */
export const ownerCountQuery = queryOptions({
  queryKey: ["people", "owners"],
  queryFn: async () => {
    const query = { role: "owner" as const, limit: 1 };
    return (await unwrap(api.GET("/v1/people", { params: { query } }))).total;
  },
});

// Who is at the desk. The cookie is http-only: the page learns who it is by asking.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, take } from "./client";

export type Session = ResponseBody<"/v1/session">;

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => take(api.GET("/v1/session")),
  retry: false,
  staleTime: Number.POSITIVE_INFINITY,
});

/** By which ways one can sign in here. */
export const waysQuery = queryOptions({
  queryKey: ["ways"],
  queryFn: () => take(api.GET("/v1/session/ways")),
});

export const signIn = (with_: { code?: string; token?: string }) =>
  take(api.POST("/v1/session", { body: with_ }));

export const signOut = () => take(api.DELETE("/v1/session"));

export const may = (session: Session, permission: Session["permissions"][number]) =>
  session.permissions.includes(permission);

export const isAdmin = (session: Session) => session.role === "owner" || session.role === "admin";

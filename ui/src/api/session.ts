// The signed-in session. The cookie is HttpOnly, so the console asks the server who it is.

import { queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";

export type Session = ResponseBody<"/v1/session">;

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => unwrap(api.GET("/v1/session")),
  retry: false,
  staleTime: Number.POSITIVE_INFINITY,
});

/** Sign-in methods that this server offers. */
export const signInMethodsQuery = queryOptions({
  queryKey: ["ways"],
  queryFn: () => unwrap(api.GET("/v1/session/ways")),
});

export const signIn = (credentials: { code?: string; token?: string }) =>
  unwrap(api.POST("/v1/session", { body: credentials }));

export const signOut = () => unwrap(api.DELETE("/v1/session"));

export const hasPermission = (session: Session, permission: Session["permissions"][number]) =>
  session.permissions.includes(permission);

export const isAdmin = (session: Session) => session.role === "owner" || session.role === "admin";

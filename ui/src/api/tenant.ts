// The account that the user is signed in to.

import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

export const tenantQuery = queryOptions({
  queryKey: ["tenant"],
  queryFn: () => unwrap(api.GET("/v1/tenants/me")),
});

export const renameTenant = (name: string) =>
  unwrap(api.PATCH("/v1/tenants/me", { body: { name } }));

// Tags of agents.

import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "./client";

/** Tags with the number of agents of each. */
export const tagsQuery = queryOptions({
  queryKey: ["agents", "tags"],
  queryFn: async () => (await unwrap(api.GET("/v1/tags"))).items,
});

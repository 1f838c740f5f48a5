// Addresses that are told what happens, and the log of what was posted to them.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { all, api, type ResponseBody, take } from "./client";

export type Webhook = ResponseBody<"/v1/webhooks/{id}">;
export type Delivery = Omit<
  ResponseBody<"/v1/webhooks/{id}/deliveries">["items"][number],
  "payload"
> & { payload: unknown };

export const EVENTS: Record<string, string> = {
  "workspace.updated": "A file or an item was written or deleted",
  "run.started": "A run began",
  "run.completed": "A run came to its end",
  "run.failed": "A run failed",
  "run.cancelled": "A run was called off",
  "approval.requested": "A call waits for somebody’s yes",
  "approval.answered": "Somebody said yes or no",
  "approval.finished": "Nothing more becomes of a call",
};

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: () =>
    all((cursor) => take(api.GET("/v1/webhooks", { params: { query: { limit: 500, cursor } } }))),
});

export const webhookQuery = (id: string) =>
  queryOptions({
    queryKey: ["webhooks", id],
    queryFn: () => take(api.GET("/v1/webhooks/{id}", { params: { path: { id } } })),
  });

export const createWebhook = (url: string, events: string[]) =>
  take(api.POST("/v1/webhooks", { body: { url, events } }));

export const changeWebhook = (
  id: string,
  body: { url?: string; events?: string[]; active?: boolean },
) => take(api.PATCH("/v1/webhooks/{id}", { params: { path: { id } }, body }));

export const deleteWebhook = (id: string) =>
  take(api.DELETE("/v1/webhooks/{id}", { params: { path: { id } } }));

export const deliveriesQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["webhooks", id, "deliveries"],
    queryFn: ({ pageParam }) =>
      take(
        api.GET("/v1/webhooks/{id}/deliveries", {
          params: { path: { id }, query: { limit: 50, cursor: pageParam } },
        }),
      ) as Promise<{ items: Delivery[]; next: string | null }>,
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
    // Attempts are no events: whoever looks at the log asks again.
    refetchInterval: 4000,
  });

export const replayDelivery = (id: string, delivery: string) =>
  take(
    api.POST("/v1/webhooks/{id}/deliveries/{delivery}/replay", {
      params: { path: { id, delivery } },
    }),
  );

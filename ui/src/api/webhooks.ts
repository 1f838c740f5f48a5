// Webhooks and their delivery logs.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, fetchAllPages, type ResponseBody, unwrap } from "./client";

export type Webhook = ResponseBody<"/v1/webhooks/{id}">;
export type Delivery = Omit<
  ResponseBody<"/v1/webhooks/{id}/deliveries">["items"][number],
  "payload"
> & { payload: unknown };

export const EVENTS: Record<string, string> = {
  "workspace.updated": "A file or an item was written or deleted",
  "run.started": "A run started",
  "run.completed": "A run completed",
  "run.failed": "A run failed",
  "run.cancelled": "A run was cancelled",
  "run.abandoned": "A run stopped reporting",
  "tool.called": "A run called a tool",
  "approval.requested": "A tool call needs approval",
  "approval.answered": "A tool call was approved or denied",
  "approval.finished": "An approval was closed",
};

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: () =>
    fetchAllPages((cursor) =>
      unwrap(api.GET("/v1/webhooks", { params: { query: { limit: 500, cursor } } })),
    ),
});

export const webhookQuery = (id: string) =>
  queryOptions({
    queryKey: ["webhooks", id],
    queryFn: () => unwrap(api.GET("/v1/webhooks/{id}", { params: { path: { id } } })),
  });

export const createWebhook = (url: string, events: string[]) =>
  unwrap(api.POST("/v1/webhooks", { body: { url, events } }));

export const changeWebhook = (
  id: string,
  body: { url?: string; events?: string[]; active?: boolean },
) => unwrap(api.PATCH("/v1/webhooks/{id}", { params: { path: { id } }, body }));

export const deleteWebhook = (id: string) =>
  unwrap(api.DELETE("/v1/webhooks/{id}", { params: { path: { id } } }));

export const deliveriesQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["webhooks", id, "deliveries"],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/v1/webhooks/{id}/deliveries", {
          params: { path: { id }, query: { limit: 50, cursor: pageParam } },
        }),
      ) as Promise<{ items: Delivery[]; next: string | null }>,
    initialPageParam: "",
    getNextPageParam: ({ next }) => next,
    // Delivery attempts emit no events, so the log is polled.
    refetchInterval: 4000,
  });

export const replayDelivery = (id: string, delivery: string) =>
  unwrap(
    api.POST("/v1/webhooks/{id}/deliveries/{delivery}/replay", {
      params: { path: { id, delivery } },
    }),
  );

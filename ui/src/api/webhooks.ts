// Webhooks and their delivery logs.

import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, type ResponseBody, unwrap } from "./client";
import { PAGE_SIZE, pagesQuery } from "./pages";

export type Webhook = ResponseBody<"/v1/webhooks/{id}">;
export type Delivery = Omit<
  ResponseBody<"/v1/webhooks/{id}/deliveries">["items"][number],
  "payload"
> & { payload: unknown };

/** What each type of event reports, by type. */
export const eventTypesQuery = queryOptions({
  queryKey: ["event-types"],
  queryFn: async () => {
    const { items } = await unwrap(api.GET("/v1/event-types"));
    return Object.fromEntries(items.map(({ type, summary }) => [type, summary]));
  },
  staleTime: Number.POSITIVE_INFINITY,
});

export const webhooksQuery = pagesQuery(["webhooks"], (cursor) =>
  unwrap(api.GET("/v1/webhooks", { params: { query: { limit: PAGE_SIZE, cursor } } })),
);

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
      ) as Promise<{ items: Delivery[]; next: string | null; total: number | null }>,
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

/** Posts a test event, and resolves to its delivery. */
export const sendTestEvent = (id: string) =>
  unwrap(api.POST("/v1/webhooks/{id}/test", { params: { path: { id } } }));

const TEST_POLL_MS = 700;

/** A new delivery, loaded again until its first attempt is logged. */
export const firstAttemptQuery = (id: string, delivery: string) =>
  queryOptions({
    queryKey: ["webhooks", id, "first-attempt", delivery],
    queryFn: async () => {
      const page = await unwrap(
        api.GET("/v1/webhooks/{id}/deliveries", {
          params: { path: { id }, query: { limit: 50 } },
        }),
      );
      return page.items.find((row) => row.id === delivery)?.attempts[0] ?? null;
    },
    refetchInterval: ({ state }) => (state.data ? false : TEST_POLL_MS),
  });

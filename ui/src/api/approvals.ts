// Calls of tools that wait for a person's yes, and what became of them.

import { queryOptions } from "@tanstack/react-query";
import { all, api, type ResponseBody, take } from "./client";

export type Approval = Omit<ResponseBody<"/v1/approvals/{id}">, "input"> & {
  input: Record<string, unknown>;
};

const pages = (status?: Approval["status"]) => {
  const page = (cursor?: string) =>
    take(api.GET("/v1/approvals", { params: { query: { status, cursor, limit: 500 } } }));
  return all(page) as Promise<Approval[]>;
};

/** Those that wait, the ones that expire first before the others. */
export const waitingQuery = queryOptions({
  queryKey: ["approvals", "waiting"],
  queryFn: async () =>
    (await pages("requested")).sort((one, other) => one.expiresAt.localeCompare(other.expiresAt)),
});

/** Those that are answered or over, the newest first. */
export const answeredQuery = queryOptions({
  queryKey: ["approvals", "answered"],
  queryFn: async () =>
    (await pages())
      .filter(({ status }) => status !== "requested")
      .sort((one, other) => over(other).localeCompare(over(one))),
});

const over = ({ answeredAt, finishedAt, requestedAt }: Approval) =>
  answeredAt ?? finishedAt ?? requestedAt;

export const approvalQuery = (id: string) =>
  queryOptions({
    queryKey: ["approvals", "one", id],
    queryFn: () =>
      take(api.GET("/v1/approvals/{id}", { params: { path: { id } } })) as Promise<Approval>,
  });

export const answerApproval = (id: string, approved: boolean, reason: string) =>
  take(
    api.POST("/v1/approvals/{id}", { params: { path: { id } }, body: { approved, reason } }),
  ) as Promise<Approval>;

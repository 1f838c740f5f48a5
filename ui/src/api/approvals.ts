// Tool calls that need a person's approval.

import { queryOptions } from "@tanstack/react-query";
import { api, fetchAllPages, type ResponseBody, unwrap } from "./client";

export type Approval = Omit<ResponseBody<"/v1/approvals/{id}">, "input"> & {
  input: Record<string, unknown>;
};

const fetchApprovals = (status?: Approval["status"]) => {
  const fetchPage = (cursor?: string) =>
    unwrap(api.GET("/v1/approvals", { params: { query: { status, cursor, limit: 500 } } }));
  return fetchAllPages(fetchPage) as Promise<Approval[]>;
};

/** Pending approvals, soonest to expire first. */
export const pendingApprovalsQuery = queryOptions({
  queryKey: ["approvals", "waiting"],
  queryFn: async () =>
    (await fetchApprovals("requested")).sort((a, b) => a.expiresAt.localeCompare(b.expiresAt)),
});

/** Decided, expired and cancelled approvals, newest first. */
export const pastApprovalsQuery = queryOptions({
  queryKey: ["approvals", "answered"],
  queryFn: async () =>
    (await fetchApprovals())
      .filter(({ status }) => status !== "requested")
      .sort((a, b) => closedAt(b).localeCompare(closedAt(a))),
});

const closedAt = ({ answeredAt, finishedAt, requestedAt }: Approval) =>
  answeredAt ?? finishedAt ?? requestedAt;

export const approvalQuery = (id: string) =>
  queryOptions({
    queryKey: ["approvals", "one", id],
    queryFn: () =>
      unwrap(api.GET("/v1/approvals/{id}", { params: { path: { id } } })) as Promise<Approval>,
  });

export const answerApproval = (id: string, approved: boolean, reason: string) =>
  unwrap(
    api.POST("/v1/approvals/{id}", { params: { path: { id } }, body: { approved, reason } }),
  ) as Promise<Approval>;

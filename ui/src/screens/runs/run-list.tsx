// Paged list of runs with a status filter.

import { useInfiniteQuery } from "@tanstack/react-query";
import { Play } from "lucide-react";
import type { ReactNode } from "react";
import { useSearchParams } from "react-router";
import { type RunStatus, runsQuery } from "../../api/runs";
import { Button } from "../../components/button";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { STATUSES } from "./run-status";
import { RunTable } from "./run-table";

interface RunListProps {
  agentId?: string;
  /** Whether rows show the agent. */
  showAgent: boolean;
  children?: ReactNode;
}

export function RunList({ agentId, showAgent, children }: RunListProps) {
  const query = useInfiniteQuery(runsQuery(agentId));
  const [params] = useSearchParams();
  const status = params.get("status") as RunStatus | null;
  const runs = query.data?.pages.flatMap((page) => page.items) ?? [];
  const visible = status ? runs.filter((run) => run.status === status) : runs;
  return (
    <div className="stack">
      <div className="row wrap filters">
        {children}
        <StatusFilter />
      </div>
      {query.isPending && <Loading label="Loading runs" />}
      {query.isError && <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.data && runs.length === 0 && <NoRuns />}
      {visible.length > 0 && <RunTable runs={visible} showAgent={showAgent} />}
      {runs.length > 0 && visible.length === 0 && (
        <p className="soft">
          No {status} runs among the latest {runs.length}.
        </p>
      )}
      {query.hasNextPage && (
        <div>
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Load more
          </Button>
        </div>
      )}
    </div>
  );
}

function StatusFilter() {
  const [params, setParams] = useSearchParams();
  const select = (status: string) =>
    setParams(
      (params) => {
        if (status) params.set("status", status);
        else params.delete("status");
        return params;
      },
      { replace: true },
    );
  return (
    <select
      className="input filter"
      aria-label="Status"
      value={params.get("status") ?? ""}
      onChange={(event) => select(event.target.value)}
    >
      <option value="">Any status</option>
      {STATUSES.map((status) => (
        <option key={status} value={status}>
          {status}
        </option>
      ))}
    </select>
  );
}

function NoRuns() {
  return (
    <EmptyState icon={Play} title="No runs yet">
      <p>
        A run takes a snapshot of the workspace when it starts. You can inspect and replay it later.
        Runtimes start runs with <code>POST /v1/runs</code>.
      </p>
    </EmptyState>
  );
}

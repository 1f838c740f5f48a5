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
  const [params] = useSearchParams();
  const filters = {
    status: params.get("status") as RunStatus | null,
    from: params.get("from"),
    to: params.get("to"),
  };
  const query = useInfiniteQuery(runsQuery(agentId, filters));
  const runs = query.data?.pages.flatMap((page) => page.items) ?? [];
  const total = query.data?.pages[0]?.total;
  const isFiltered = Object.values(filters).some(Boolean);
  return (
    <div className="stack">
      <div className="row wrap filters">
        {children}
        <StatusFilter />
        <DayFilter name="from" label="From" />
        <DayFilter name="to" label="To" />
      </div>
      {query.isPending && <Loading label="Loading runs" />}
      {query.isError && <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.data && runs.length === 0 && !isFiltered && <NoRuns />}
      {query.data && runs.length === 0 && isFiltered && <p className="soft">No matching runs.</p>}
      {runs.length > 0 && <RunTable runs={runs} showAgent={showAgent} />}
      <div className="row wrap">
        {query.hasNextPage && (
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Load more
          </Button>
        )}
        {runs.length > 0 && (
          <span className="faint" role="status">
            {runs.length.toLocaleString("en")}
            {typeof total === "number" && ` of ${total.toLocaleString("en")}`} runs
          </span>
        )}
      </div>
    </div>
  );
}

function useParameter(name: string) {
  const [params, setParams] = useSearchParams();
  const set = (value: string) =>
    setParams(
      (params) => {
        if (value) params.set(name, value);
        else params.delete(name);
        return params;
      },
      { replace: true },
    );
  return [params.get(name) ?? "", set] as const;
}

function DayFilter({ name, label }: { name: string; label: string }) {
  const [day, setDay] = useParameter(name);
  return (
    <label className="row">
      <span className="faint">{label}</span>
      <input
        className="input"
        type="date"
        value={day}
        onChange={(event) => setDay(event.target.value)}
      />
    </label>
  );
}

function StatusFilter() {
  const [status, select] = useParameter("status");
  return (
    <select
      className="input filter"
      aria-label="Status"
      value={status}
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

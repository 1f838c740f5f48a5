// List of all agents, with filters and sorting; fast with 10,000 agents.

import { Bot, Plus } from "lucide-react";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { useTitle } from "../../components/screen";
import { useSession } from "../../layout/session-context";
import { filterAgents, sortAgents } from "./agent-filters";
import { type AgentListState, useAgentList } from "./agent-list";
import { AgentTable } from "./agent-table";
import { BulkBar } from "./bulk-bar";
import { CreateAgent } from "./create-agent";
import { FilterBar } from "./filter-bar";
import { useAgentFilters } from "./use-agent-filters";

export default function AgentsScreen() {
  useTitle("Agents");
  const { reload, ...list } = useAgentList();
  const [isCreating, setCreating] = useCreateDialog();
  const { rows, isComplete, error } = list;
  return (
    <div className="agents-screen">
      <header className="screen-header">
        <div className="title-block">
          <h1>Agents</h1>
          <Counts {...list} />
        </div>
        <CreateButton onClick={() => setCreating(true)} />
      </header>
      {error !== null && <ErrorNotice error={error} onRetry={reload} />}
      {rows.length > 0 && <FilteredAgents {...list} />}
      {rows.length === 0 && isComplete && <NoAgents />}
      {rows.length === 0 && !isComplete && error === null && <Loading label="Loading agents" />}
      {isCreating && <CreateAgent onClose={() => setCreating(false)} />}
    </div>
  );
}

/** Whether the create dialog is open; the palette opens it by navigation state. */
function useCreateDialog() {
  const { state, search } = useLocation();
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (!state?.creating) return;
    setOpen(true);
    void navigate({ search }, { replace: true, state: null });
  }, [state, search, navigate]);
  return [isOpen, setOpen] as const;
}

function CreateButton({ onClick }: { onClick: () => void }) {
  const admin = isAdmin(useSession());
  return (
    <Button
      kind="primary"
      icon={Plus}
      disabled={!admin}
      title={admin ? undefined : "Only owners and admins can create agents"}
      onClick={onClick}
    >
      New agent
    </Button>
  );
}

function Counts({ rows, isComplete }: AgentListState) {
  const shared = useMemo(() => rows.filter((row) => row.isShared).length, [rows]);
  const pending = useMemo(() => rows.filter((row) => row.updatesAvailable).length, [rows]);
  if (rows.length === 0) return null;
  const format = (n: number) => n.toLocaleString("en");
  return (
    <div className="subtitle" role="status">
      {format(rows.length)} {rows.length === 1 ? "agent" : "agents"}
      {!isComplete && " so far"} · {format(shared)} shared · {format(pending)} with updates
    </div>
  );
}

function FilteredAgents({ rows }: AgentListState) {
  const [filters, setFilters] = useAgentFilters();
  const deferred = useDeferredValue(filters);
  const sortedRows = useMemo(
    () => sortAgents(rows, deferred.sort, deferred.descending),
    [rows, deferred.sort, deferred.descending],
  );
  const visible = useMemo(() => filterAgents(sortedRows, deferred), [sortedRows, deferred]);
  const admin = isAdmin(useSession());
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const shown = useMemo(() => visible.map(({ id }) => id), [visible]);
  const selectedShown = useMemo(
    () => new Set(shown.filter((id) => selected.has(id))),
    [shown, selected],
  );
  return (
    <>
      <FilterBar
        rows={rows}
        filters={filters}
        setFilters={setFilters}
        visibleCount={visible.length}
      />
      {admin && <BulkBar selected={selectedShown} shown={shown} onSelect={setSelected} />}
      {visible.length > 0 ? (
        <AgentTable
          rows={visible}
          filters={filters}
          setFilters={setFilters}
          selected={selectedShown}
          onSelect={admin ? setSelected : undefined}
        />
      ) : (
        <EmptyState icon={Bot} title="No matching agents">
          <p>Agents match by name, slug, template and human. Try fewer words or filters.</p>
          <Button onClick={() => setFilters({ text: "", template: "", kind: "", updates: false })}>
            Clear filters
          </Button>
        </EmptyState>
      )}
    </>
  );
}

function NoAgents() {
  return (
    <EmptyState icon={Bot} title="No agents yet">
      <p>
        An agent has a workspace: its own files over those of its template and the defaults. Create
        one here or in the terminal:
      </p>
      <code>carrel apply agents.yaml</code>
    </EmptyState>
  );
}

// All agents: found as one types, sorted by any column, and quick with ten thousand.

import { Bot, Plus } from "lucide-react";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Empty, Loading, Refused } from "../../components/query-states";
import { useTitle } from "../../components/screen";
import { useSession } from "../../layout/session-context";
import { found, sorted } from "./agent-filters";
import { type Listed, useAgentList } from "./agent-list";
import { AgentTable } from "./agent-table";
import { CreateAgent } from "./create-agent";
import { Filters } from "./filter-bar";
import { useWanted } from "./use-agent-filters";

export default function AgentsScreen() {
  useTitle("Agents");
  const { again, ...listed } = useAgentList();
  const [creating, setCreating] = useAskedFor();
  const { rows, whole, error } = listed;
  return (
    <div className="agents-screen">
      <header className="screen-head">
        <div className="titles">
          <h1>Agents</h1>
          <Counts {...listed} />
        </div>
        <CreateButton onClick={() => setCreating(true)} />
      </header>
      {error !== null && <Refused error={error} again={again} />}
      {rows.length > 0 && <Found {...listed} />}
      {rows.length === 0 && whole && <None />}
      {rows.length === 0 && !whole && error === null && <Loading what="Loading the agents" />}
      {creating && <CreateAgent onClose={() => setCreating(false)} />}
    </div>
  );
}

/** Whether the dialog is open; the palette asks for it by the state that it hands on. */
function useAskedFor() {
  const { state, search } = useLocation();
  const go = useNavigate();
  const [asked, setAsked] = useState(false);
  useEffect(() => {
    if (!state?.creating) return;
    setAsked(true);
    void go({ search }, { replace: true, state: null });
  }, [state, search, go]);
  return [asked, setAsked] as const;
}

function CreateButton({ onClick }: { onClick: () => void }) {
  const admin = isAdmin(useSession());
  return (
    <Button
      kind="primary"
      icon={Plus}
      disabled={!admin}
      title={admin ? undefined : "Only an owner or an admin creates agents"}
      onClick={onClick}
    >
      New agent
    </Button>
  );
}

function Counts({ rows, whole }: Listed) {
  const shared = useMemo(() => rows.filter((row) => row.isShared).length, [rows]);
  const waiting = useMemo(() => rows.filter((row) => row.updatesAvailable).length, [rows]);
  if (rows.length === 0) return null;
  const many = (n: number) => n.toLocaleString("en");
  return (
    <div className="under" role="status">
      {many(rows.length)} {rows.length === 1 ? "agent" : "agents"}
      {!whole && " so far"} · {many(shared)} shared · {many(waiting)} with updates waiting
    </div>
  );
}

function Found({ rows }: Listed) {
  const [wanted, want] = useWanted();
  const later = useDeferredValue(wanted);
  const ordered = useMemo(
    () => sorted(rows, later.sort, later.down),
    [rows, later.sort, later.down],
  );
  const shown = useMemo(() => found(ordered, later), [ordered, later]);
  return (
    <>
      <Filters rows={rows} wanted={wanted} want={want} shown={shown.length} />
      {shown.length > 0 ? (
        <AgentTable rows={shown} wanted={wanted} want={want} />
      ) : (
        <Empty icon={Bot} title="No agent is like that">
          <p>Agents are found by name, slug, template and human. Try fewer words or filters.</p>
          <Button onClick={() => want({ text: "", template: "", kind: "", updates: false })}>
            Show all agents
          </Button>
        </Empty>
      )}
    </>
  );
}

function None() {
  return (
    <Empty icon={Bot} title="There are no agents yet">
      <p>
        An agent has a workspace: files of its own over those of its template and the defaults. Make
        one with the button above, or from the terminal:
      </p>
      <code>carrel apply agents.yaml</code>
    </Empty>
  );
}

// A run as a time machine: what it saw, what it was told, what has changed since, what it did.

import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearchParams } from "react-router";
import { agentQuery } from "../../api/agents";
import { type Run, runQuery } from "../../api/runs";
import { plain } from "../../components/escape-text";
import { Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { RunActions } from "./run-actions";
import { RunChanges } from "./run-changes";
import { RunFacts } from "./run-details";
import { RunEvents } from "./run-events";
import { RunStatus } from "./run-status";
import { FrozenFiles } from "./snapshot-files";
import { FrozenPrompt } from "./snapshot-prompt";

const VIEWS = {
  files: "Files then",
  prompt: "Prompt then",
  changes: "Changed since",
  events: "Events",
};
type View = keyof typeof VIEWS;

export default function RunScreen() {
  const id = useParams()["id"] ?? "";
  const run = useQuery(runQuery(id));
  return <Shown query={run}>{(found) => <RunPage run={found} />}</Shown>;
}

function RunPage({ run }: { run: Run }) {
  const agent = useQuery({ ...agentQuery(run.agentId ?? ""), enabled: run.agentId !== null });
  const name = plain(run.workflowId || "Run", 120);
  return (
    <Screen
      title={name}
      heading={
        <span className="row wrap">
          {name} <RunStatus status={run.status} />
        </span>
      }
      under={
        <code className="bidi" title="The run's id">
          {run.runId}
        </code>
      }
      actions={<RunActions run={run} />}
    >
      <RunFacts run={run} agentName={agent.data?.name} />
      <Views run={run} />
    </Screen>
  );
}

function Views({ run }: { run: Run }) {
  const [params] = useSearchParams();
  const asked = params.get("view") as View | null;
  const view: View = asked && asked in VIEWS ? asked : "files";
  return (
    <div className="stack">
      <nav className="tabs" aria-label="Views of the run">
        {(Object.keys(VIEWS) as View[]).map((key) => (
          <Link
            key={key}
            to={{ search: `?view=${key}` }}
            className={key === view ? "on" : ""}
            aria-current={key === view ? "page" : undefined}
          >
            {VIEWS[key]}
          </Link>
        ))}
      </nav>
      <section aria-label={VIEWS[view]}>
        <ViewOf run={run} view={view} />
      </section>
    </div>
  );
}

function ViewOf({ run, view }: { run: Run; view: View }) {
  if (view === "events") return <RunEvents run={run} />;
  if (!run.kept)
    return (
      <p className="notice">
        The snapshot was let go: what this run saw is no more to be had. Its facts and its events
        stay.
      </p>
    );
  if (view === "prompt") return <FrozenPrompt run={run} />;
  return view === "changes" ? <RunChanges run={run} /> : <FrozenFiles run={run} />;
}

// A run as a time machine: what it saw, what it was told, what has changed since, what it did.

import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearchParams } from "react-router";
import { agentQuery } from "../../api/agents";
import { type Run, runQuery } from "../../api/runs";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { RunActions } from "./run-actions";
import { RunChanges } from "./run-changes";
import { RunDetails } from "./run-details";
import { RunEvents } from "./run-events";
import { RunStatusBadge } from "./run-status";
import { SnapshotFiles } from "./snapshot-files";
import { SnapshotPrompt } from "./snapshot-prompt";

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
  return <QueryResult query={run}>{(data) => <RunPage run={data} />}</QueryResult>;
}

function RunPage({ run }: { run: Run }) {
  const agent = useQuery({ ...agentQuery(run.agentId ?? ""), enabled: run.agentId !== null });
  const name = escapeText(run.workflowId || "Run", 120);
  return (
    <Screen
      title={name}
      heading={
        <span className="row wrap">
          {name} <RunStatusBadge status={run.status} />
        </span>
      }
      subtitle={
        <code className="bidi" title="The run's id">
          {run.runId}
        </code>
      }
      actions={<RunActions run={run} />}
    >
      <RunDetails run={run} agentName={agent.data?.name} />
      <Views run={run} />
    </Screen>
  );
}

function Views({ run }: { run: Run }) {
  const [params] = useSearchParams();
  const requested = params.get("view") as View | null;
  const view: View = requested && requested in VIEWS ? requested : "files";
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
        <ViewContent run={run} view={view} />
      </section>
    </div>
  );
}

function ViewContent({ run, view }: { run: Run; view: View }) {
  if (view === "events") return <RunEvents run={run} />;
  if (!run.kept)
    return (
      <p className="notice">
        The snapshot was let go: what this run saw is no more to be had. Its facts and its events
        stay.
      </p>
    );
  if (view === "prompt") return <SnapshotPrompt run={run} />;
  return view === "changes" ? <RunChanges run={run} /> : <SnapshotFiles run={run} />;
}

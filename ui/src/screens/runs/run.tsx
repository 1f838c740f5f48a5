// One run: snapshot files, prompt, what it was made of, its time line, and changes since.

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
import { RunStatusBadge } from "./run-status";
import { RunTimeLine } from "./run-time-line";
import { RunWhy } from "./run-why";
import { SnapshotFiles } from "./snapshot-files";
import { SnapshotPrompt } from "./snapshot-prompt";

const VIEWS = {
  files: "Files",
  prompt: "Prompt",
  why: "Why",
  timeline: "Time line",
  changes: "Changes since",
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
        <code className="bidi" title="Run ID">
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
      <nav className="tabs" aria-label="Run">
        {(Object.keys(VIEWS) as View[]).map((key) => (
          <Link
            key={key}
            to={{ search: `?view=${key}` }}
            className={key === view ? "active" : ""}
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
  if (view === "timeline") return <RunTimeLine run={run} />;
  if (view === "why") return <RunWhy run={run} />;
  if (!run.kept)
    return (
      <p className="notice">
        The snapshot was deleted. Only details and the time line are available.
      </p>
    );
  if (view === "prompt") return <SnapshotPrompt run={run} />;
  return view === "changes" ? <RunChanges run={run} /> : <SnapshotFiles run={run} />;
}

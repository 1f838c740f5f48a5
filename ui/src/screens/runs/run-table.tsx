// Table of runs, newest first.

import { Link } from "react-router";
import type { ListedRun } from "../../api/runs";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import { formatDuration } from "./duration";
import { RunStatusBadge } from "./run-status";

export function RunTable({ runs, showAgent }: { runs: readonly ListedRun[]; showAgent: boolean }) {
  return (
    <div className="table-wrap">
      <table className="table run-table" aria-label="Runs">
        <thead>
          <tr>
            <th scope="col">Run</th>
            {showAgent && <th scope="col">Agent</th>}
            <th scope="col">Status</th>
            <th scope="col" className="only-large">
              Scope
            </th>
            <th scope="col">Started</th>
            <th scope="col" className="number only-large">
              Duration
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <Row key={run.id} run={run} showAgent={showAgent} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ run, showAgent }: { run: ListedRun; showAgent: boolean }) {
  return (
    <tr>
      <td>
        <Link className="bidi run-name" to={`/runs/${encodeURIComponent(run.id)}`}>
          {escapeText(run.workflowId || run.id, 80)}
        </Link>
        <div className="row wrap faint">
          {run.workflowId && <code className="only-large">{run.id}</code>}
          {run.replayOf && <span className="badge">replay</span>}
          {run.parentRunId && <span className="badge">child</span>}
          {!run.kept && <span className="badge">no snapshot</span>}
        </div>
      </td>
      {showAgent && (
        <td>
          <AgentCell run={run} />
        </td>
      )}
      <td>
        <RunStatusBadge status={run.status} />
      </td>
      <td className="only-large">{run.scope}</td>
      <td>
        <Time at={run.startedAt} />
      </td>
      <td className="number only-large">
        {run.endedAt ? (
          formatDuration(run.startedAt, run.endedAt)
        ) : (
          <span className="faint">—</span>
        )}
      </td>
    </tr>
  );
}

function AgentCell({ run }: { run: ListedRun }) {
  if (run.agent)
    return (
      <Link
        className="bidi truncate run-agent"
        to={`/agents/${encodeURIComponent(run.agent.id)}/runs`}
      >
        {escapeText(run.agent.name, 60)}
      </Link>
    );
  return <span className="faint">{run.agentId ? "deleted agent" : "—"}</span>;
}

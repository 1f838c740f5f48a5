// Details of a run, and related runs.

import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { fileUrl } from "../../api/files";
import { type Run, runsQuery } from "../../api/runs";
import { escapeText } from "../../components/escape-text";
import { PrincipalName } from "../../components/principal-name";
import { Time } from "../../components/time";
import { formatDuration } from "./duration";

export function RunDetails({ run, agentName }: { run: Run; agentName: string | undefined }) {
  return (
    <>
      <RunReason run={run} />
      <dl className="card run-details" aria-label="Details">
        <Property name={run.agentId ? "Agent" : "Workspace"}>
          <RunOwner run={run} agentName={agentName} />
        </Property>
        <Property name="Scope">{run.scope}</Property>
        <Property name="Started">
          <Time at={run.startedAt} />
        </Property>
        <Property name={run.endedAt ? "Ended" : "Running for"}>
          {run.endedAt ? <Time at={run.endedAt} /> : formatDuration(run.startedAt, null)}
        </Property>
        {run.endedAt && (
          <Property name="Duration">{formatDuration(run.startedAt, run.endedAt)}</Property>
        )}
        <Property name="Started by">
          <PrincipalName id={run.owner["principal"]} />
        </Property>
        {run.parentRunId && (
          <Property name="Parent run">
            <RunLink id={run.parentRunId} />
          </Property>
        )}
        {run.replayOf && (
          <Property name="Replay of">
            <RunLink id={run.replayOf} />
          </Property>
        )}
        <RelatedRuns run={run} />
      </dl>
    </>
  );
}

function RunReason({ run }: { run: Run }) {
  if (!run.reason && !run.abandonedAt) return null;
  return (
    <div className={run.status === "failed" ? "notice bad" : "notice"} role="note">
      <div className="grow">
        {run.abandonedAt && (
          <p>
            {run.status === "abandoned" ? "Stopped reporting" : "Had stopped reporting"}; abandoned{" "}
            <Time at={run.abandonedAt} />.
            {run.status === "abandoned"
              ? " Its runtime can still report, write and end it."
              : ` It was ended as ${run.status} later.`}
          </p>
        )}
        {run.reason && (
          <p>
            <strong>Reason:</strong> <span className="bidi">{escapeText(run.reason, 4000)}</span>
          </p>
        )}
      </div>
    </div>
  );
}

function Property({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const RunLink = ({ id }: { id: string }) => (
  <Link to={`/runs/${encodeURIComponent(id)}`}>
    <code>{id}</code>
  </Link>
);

function RunOwner({ run, agentName }: { run: Run; agentName: string | undefined }) {
  if (run.agentId)
    return (
      <Link className="bidi" to={`/agents/${encodeURIComponent(run.agentId)}/runs`}>
        {escapeText(agentName ?? run.agentId, 60)}
      </Link>
    );
  const name = run.owner["workspace"];
  if (!name) return <>—</>;
  return (
    <Link className="bidi" to={fileUrl({ kind: "workspace", id: name })}>
      {escapeText(name, 60)}
    </Link>
  );
}

/** Children and replays among the latest runs of the same agent. */
function RelatedRuns({ run }: { run: Run }) {
  const { data } = useInfiniteQuery(runsQuery(run.agentId ?? undefined));
  const latest = data?.pages.flatMap((page) => page.items) ?? [];
  const children = latest.filter((candidate) => candidate.parentRunId === run.runId);
  const replays = latest.filter((candidate) => candidate.replayOf === run.runId);
  return (
    <>
      {children.length > 0 && (
        <Property name="Recent child runs">
          {children.map(({ id }) => (
            <div key={id}>
              <RunLink id={id} />
            </div>
          ))}
        </Property>
      )}
      {replays.length > 0 && (
        <Property name="Recent replays">
          {replays.map(({ id }) => (
            <div key={id}>
              <RunLink id={id} />
            </div>
          ))}
        </Property>
      )}
    </>
  );
}

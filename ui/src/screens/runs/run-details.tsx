// What is known of a run, and the runs that it belongs to.

import { useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { addressOf } from "../../api/files";
import { type Run, runsQuery } from "../../api/runs";
import { plain } from "../../components/escape-text";
import { Who } from "../../components/principal-name";
import { Time } from "../../components/time";
import { lasted } from "./duration";

export function RunFacts({ run, agentName }: { run: Run; agentName: string | undefined }) {
  return (
    <dl className="card run-facts" aria-label="Facts of the run">
      <Fact name="Of">
        <Whose run={run} agentName={agentName} />
      </Fact>
      <Fact name="Scope">{run.scope}</Fact>
      <Fact name="Started">
        <Time at={run.startedAt} />
      </Fact>
      <Fact name={run.endedAt ? "Ended" : "Goes on for"}>
        {run.endedAt ? <Time at={run.endedAt} /> : lasted(run.startedAt, null)}
      </Fact>
      {run.endedAt && <Fact name="Lasted">{lasted(run.startedAt, run.endedAt)}</Fact>}
      <Fact name="Started by">
        <Who id={run.owner["principal"]} />
      </Fact>
      {run.parentRunId && (
        <Fact name="Child of">
          <RunLink id={run.parentRunId} />
        </Fact>
      )}
      {run.replayOf && (
        <Fact name="Replay of">
          <RunLink id={run.replayOf} />
        </Fact>
      )}
      <Relations run={run} />
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
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

function Whose({ run, agentName }: { run: Run; agentName: string | undefined }) {
  if (run.agentId)
    return (
      <Link className="bidi" to={`/agents/${encodeURIComponent(run.agentId)}/runs`}>
        {plain(agentName ?? run.agentId, 60)}
      </Link>
    );
  const name = run.owner["workspace"];
  if (!name) return <>—</>;
  return (
    <Link className="bidi" to={addressOf({ kind: "workspace", id: name })}>
      workspace {plain(name, 60)}
    </Link>
  );
}

/** Its children and replays, as far as they are among the latest runs of the same agent. */
function Relations({ run }: { run: Run }) {
  const { data } = useInfiniteQuery(runsQuery(run.agentId ?? undefined));
  const latest = data?.pages.flatMap((page) => page.items) ?? [];
  const children = latest.filter((each) => each.parentRunId === run.runId);
  const replays = latest.filter((each) => each.replayOf === run.runId);
  return (
    <>
      {children.length > 0 && (
        <Fact name="Latest children">
          {children.map(({ id }) => (
            <div key={id}>
              <RunLink id={id} />
            </div>
          ))}
        </Fact>
      )}
      {replays.length > 0 && (
        <Fact name="Latest replays">
          {replays.map(({ id }) => (
            <div key={id}>
              <RunLink id={id} />
            </div>
          ))}
        </Fact>
      )}
    </>
  );
}

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { subjectUrl } from "../../api/audit";
import {
  type ActivityChange,
  type ActivityRun,
  activityRunsQuery,
  latestChangesQuery,
} from "../../api/overview";
import { hasPermission } from "../../api/session";
import { escapeText } from "../../components/escape-text";
import { AgentName, PrincipalName } from "../../components/principal-name";
import { ErrorNotice, Loading } from "../../components/query-states";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { RunStatusBadge } from "../runs/run-status";
import { OverviewCard } from "./overview-card";

const MAX_ENTRIES = 10;

interface Entry {
  id: string;
  at: string;
  content: ReactNode;
}

/** The latest runs and, for admins, changes by people. Kept current by the event stream. */
export function Activity() {
  const canReadChanges = hasPermission(useSession(), "tenant:admin");
  const runs = useQuery(activityRunsQuery);
  const changes = useQuery({ ...latestChangesQuery, enabled: canReadChanges });
  const isPending = runs.isPending || (canReadChanges && changes.isPending);
  const entries = [
    ...(runs.data ?? []).map(runEntry),
    ...(changes.data ?? []).map(changeEntry),
  ].sort((a, b) => b.at.localeCompare(a.at));
  return (
    <OverviewCard title="Activity" summary="Live">
      {runs.isError && <ErrorNotice error={runs.error} />}
      {isPending && <Loading label="Loading the activity" />}
      {!isPending && entries.length === 0 && <p className="faint">Nothing has happened yet.</p>}
      <ol className="activity">
        {entries.slice(0, MAX_ENTRIES).map(({ id, at, content }) => (
          <li key={id}>
            <span className="grow">{content}</span>
            <span className="faint nowrap">
              <Time at={at} />
            </span>
          </li>
        ))}
      </ol>
    </OverviewCard>
  );
}

function runEntry({ runId, agentId, status, startedAt, endedAt }: ActivityRun): Entry {
  return {
    id: runId,
    at: endedAt ?? startedAt,
    content: (
      <>
        <Link to={`/runs/${encodeURIComponent(runId)}`} aria-label={`Run, ${status}`}>
          <RunStatusBadge status={status} />
        </Link>{" "}
        {agentId && <AgentName id={agentId} />}
      </>
    ),
  };
}

function changeEntry({ id, at, by, why, subjects }: ActivityChange): Entry {
  const url = subjects[0] ? subjectUrl(subjects[0]) : null;
  const text = escapeText(why, 80);
  return {
    id: `change-${id}`,
    at,
    content: (
      <>
        <PrincipalName id={by} /> {url ? <Link to={url}>{text}</Link> : text}
      </>
    ),
  };
}

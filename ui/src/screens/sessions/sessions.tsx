// Sessions tab of an agent, with full-text search.

import { useInfiniteQuery } from "@tanstack/react-query";
import { MessagesSquare, RefreshCw } from "lucide-react";
import { useDeferredValue } from "react";
import { Link, useSearchParams } from "react-router";
import { type SessionRow, sessionsQuery } from "../../api/transcripts";
import { Button } from "../../components/button";
import { SearchField } from "../../components/field";
import { MoreRows, rowsOf } from "../../components/paged-rows";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { useTitle } from "../../components/screen";
import { useAgent } from "../agents/agent-context";
import { SessionCard } from "./session-card";

type Scope = "main" | "shared";

export default function SessionsScreen() {
  const { id } = useAgent();
  const [params, setParams] = useSearchParams();
  const q = params.get("q") ?? "";
  const scope = (params.get("scope") as Scope | null) ?? undefined;
  const query = useInfiniteQuery(sessionsQuery(id, { q: useDeferredValue(q.trim()), scope }));
  useTitle("Sessions");
  const setParam = (name: string, value: string) =>
    setParams(
      (params) => {
        if (value) params.set(name, value);
        else params.delete(name);
        return params;
      },
      { replace: true },
    );
  const sessions = rowsOf(query);
  return (
    <section className="stack" aria-labelledby="sessions-heading">
      <div className="row wrap">
        <h2 id="sessions-heading" className="grow">
          Sessions
        </h2>
        <Button
          icon={RefreshCw}
          busy={query.isFetching && !query.isPending}
          onClick={() => void query.refetch()}
        >
          Refresh
        </Button>
      </div>
      <div className="row wrap filters">
        <div className="grow">
          <SearchField label="Search sessions" value={q} onChange={(text) => setParam("q", text)} />
        </div>
        <ScopeFilter scope={scope} onSelect={(value) => setParam("scope", value)} />
      </div>
      {query.isPending && <Loading label="Loading sessions" />}
      {query.isError && <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.data && sessions.length === 0 && <NoSessions q={q} isFiltered={Boolean(q || scope)} />}
      <SessionList agentId={id} sessions={sessions} query={q} />
      <MoreRows query={query} noun="sessions" />
    </section>
  );
}

interface ScopeFilterProps {
  scope: Scope | undefined;
  onSelect: (scope: string) => void;
}

function ScopeFilter({ scope, onSelect }: ScopeFilterProps) {
  return (
    <select
      className="input filter"
      aria-label="Scope"
      value={scope ?? ""}
      onChange={(event) => onSelect(event.target.value)}
    >
      <option value="">Any scope</option>
      <option value="main">main</option>
      <option value="shared">shared</option>
    </select>
  );
}

interface SessionListProps {
  agentId: string;
  sessions: readonly SessionRow[];
  query: string;
}

function SessionList({ agentId, sessions, query }: SessionListProps) {
  if (sessions.length === 0) return null;
  return (
    <ul className="stack session-list" aria-label="Sessions">
      {sessions.map((session) => (
        <SessionCard key={session.id} agentId={agentId} session={session} query={query} />
      ))}
    </ul>
  );
}

function NoSessions({ q, isFiltered }: { q: string; isFiltered: boolean }) {
  if (isFiltered)
    return (
      <EmptyState icon={MessagesSquare} title="No results">
        <p>
          Matches word prefixes, ignoring case and accents.{" "}
          {q && <Link to={`/search?q=${encodeURIComponent(q)}`}>Search all agents</Link>}
        </p>
      </EmptyState>
    );
  return (
    <EmptyState icon={MessagesSquare} title="No sessions yet">
      <p>
        Transcripts of conversations with this agent. Its runtime starts a session with{" "}
        <code>POST /v1/agents/…/sessions</code> and adds entries to it.
      </p>
    </EmptyState>
  );
}

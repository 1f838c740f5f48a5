// Loading, empty and error states of queries.

import type { UseQueryResult } from "@tanstack/react-query";
import { AlertTriangle, Lock, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { Problem, toSentence } from "../api/problem";
import { Button } from "./button";

export function Loading({ label = "Loading" }: { label?: string }) {
  return (
    <div className="loading" role="status">
      <span className="spinner" />
      <span className="visually-hidden">{label}</span>
    </div>
  );
}

interface EmptyStateProps {
  icon: LucideIcon;
  title: string;
  children?: ReactNode;
}

/** Explains what a list without entries will contain. */
export function EmptyState({ icon: Icon, title, children }: EmptyStateProps) {
  return (
    <div className="empty">
      <Icon size={32} strokeWidth={1.4} aria-hidden />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Says that an agent is private to another person. */
function PrivateAgentNotice() {
  return (
    <div className="notice" role="status">
      <Lock size={16} aria-hidden />
      <div className="grow">
        <strong>You cannot see this agent's private files.</strong>
        <div className="soft">
          Its files, memories, sessions, runs and items are open to its owner, its paired human,
          owners and admins.
        </div>
      </div>
    </div>
  );
}

export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = error instanceof Problem ? error : null;
  if (problem?.details.privateAgent) return <PrivateAgentNotice />;
  return (
    <div className="notice bad" role="alert">
      <AlertTriangle size={16} aria-hidden />
      <div className="grow">
        <strong>{problem?.status === 404 ? "Not found" : "Request failed"}</strong>
        <div>{toSentence(error)}</div>
      </div>
      {onRetry && (
        <Button small onClick={onRetry}>
          Retry
        </Button>
      )}
    </div>
  );
}

interface QueryResultProps<Data> {
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
  label?: string;
}

/** The data of a query, its loading state, or its error. */
export function QueryResult<Data>({ query, children, label }: QueryResultProps<Data>) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.isError)
    return <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading label={label} />;
}

// What stands where the thing itself cannot: not yet, nothing, or not possible.

import type { UseQueryResult } from "@tanstack/react-query";
import { AlertTriangle, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { Problem, sentence } from "../api/problem";
import { Button } from "./button";

export function Loading({ what = "Loading" }: { what?: string }) {
  return (
    <div className="loading" role="status">
      <span className="spinner" />
      <span className="visually-hidden">{what}</span>
    </div>
  );
}

interface EmptyProps {
  icon: LucideIcon;
  title: string;
  children?: ReactNode;
}

/** Nothing is here: says what would be, and how it comes to be. */
export function Empty({ icon: Icon, title, children }: EmptyProps) {
  return (
    <div className="empty">
      <Icon size={32} strokeWidth={1.4} aria-hidden />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Refused({ error, again }: { error: unknown; again?: () => void }) {
  const known = error instanceof Problem ? error : null;
  return (
    <div className="notice bad" role="alert">
      <AlertTriangle size={16} aria-hidden />
      <div className="grow">
        <strong>{known?.status === 404 ? "There is nothing here." : "That did not work."}</strong>
        <div>{sentence(error)}</div>
      </div>
      {again && (
        <Button small onClick={again}>
          Try again
        </Button>
      )}
    </div>
  );
}

interface ShownProps<Data> {
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
  what?: string;
}

/** What a query found, or that it is under way, or why it was refused. */
export function Shown<Data>({ query, children, what }: ShownProps<Data>) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.isError) return <Refused error={query.error} again={() => void query.refetch()} />;
  return <Loading what={what} />;
}

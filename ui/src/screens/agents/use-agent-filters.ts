// Filters of the agent list, kept in the URL.

import { useEffect, useRef, useState } from "react";
import { useLocation, useSearchParams } from "react-router";
import { isLeaving } from "../../layout/navigation-state";
import { type AgentFilters, COLUMNS, type Column } from "./agent-filters";

const URL_DELAY_MS = 300;

function filtersFromParams(params: URLSearchParams): AgentFilters {
  const sort = params.get("sort") as Column;
  const kind = params.get("kind");
  return {
    text: params.get("q") ?? "",
    template: params.get("template") ?? "",
    kind: kind === "shared" || kind === "private" ? kind : "",
    updates: params.has("updates"),
    sort: COLUMNS.includes(sort) ? sort : "name",
    descending: params.has("down"),
  };
}

function filtersToParams({
  text,
  template,
  kind,
  updates,
  sort,
  descending: down,
}: AgentFilters): URLSearchParams {
  const entries = {
    q: text,
    template,
    kind,
    updates: updates ? "1" : "",
    sort: sort === "name" ? "" : sort,
    down: down ? "1" : "",
  };
  return new URLSearchParams(Object.entries(entries).filter(([, value]) => value));
}

/** Filters that update at once; the URL follows after URL_DELAY_MS. */
export function useAgentFilters(): [AgentFilters, (patch: Partial<AgentFilters>) => void] {
  const [params, setParams] = useSearchParams();
  const [filters, setFilters] = useState(() => filtersFromParams(params));
  const currentQuery = params.toString();
  const lastWritten = useRef(currentQuery);
  const { pathname } = useLocation();
  const latest = useRef({ setParams, pathname });
  latest.current = { setParams, pathname };
  useEffect(() => {
    const query = filtersToParams(filters).toString();
    if (query === lastWritten.current) return;
    const timer = setTimeout(() => {
      if (isLeaving(latest.current.pathname)) return;
      lastWritten.current = query;
      latest.current.setParams(new URLSearchParams(query), { replace: true });
    }, URL_DELAY_MS);
    return () => clearTimeout(timer);
  }, [filters]);
  useEffect(() => {
    if (currentQuery === lastWritten.current) return;
    lastWritten.current = currentQuery;
    setFilters(filtersFromParams(new URLSearchParams(currentQuery)));
  }, [currentQuery]);
  return [filters, (patch) => setFilters((current) => ({ ...current, ...patch }))];
}

// Full-text search in files, memories and sessions.

import { useQuery } from "@tanstack/react-query";
import { Brain, FileText, type LucideIcon, MessagesSquare, SearchX } from "lucide-react";
import { useDeferredValue, useEffect, useRef, useState } from "react";
import { Link, useLocation, useSearchParams } from "react-router";
import { type Hit, hitUrl, searchQuery } from "../../api/search";
import { escapeText } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { isLeaving } from "../../layout/navigation-state";

const URL_DELAY_MS = 300;
const KINDS: { kind: Hit["kind"]; name: string; icon: LucideIcon }[] = [
  { kind: "file", name: "Files", icon: FileText },
  { kind: "memory", name: "Memories", icon: Brain },
  { kind: "session", name: "Sessions", icon: MessagesSquare },
];

export default function SearchScreen() {
  const [text, setText] = useQueryParam();
  const query = useDeferredValue(text).trim();
  const { data, error, isFetching, refetch } = useQuery(searchQuery(query, 50));
  const hits = query.length > 1 ? (data?.items ?? []) : [];
  return (
    <Screen title="Search">
      <SearchField
        label="Search files, memories and sessions"
        value={text}
        maxLength={200}
        onChange={setText}
      />
      {error && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      <div role="status" className="visually-hidden">
        {isFetching ? "Searching" : `${hits.length} results`}
      </div>
      {KINDS.map((kind) => (
        <HitList key={kind.kind} {...kind} hits={hits.filter((hit) => hit.kind === kind.kind)} />
      ))}
      {hits.length > 0 && data?.complete === false && (
        <p className="faint">Too many results. Refine your search.</p>
      )}
      {hits.length === 0 && isFetching && <Loading label="Searching" />}
      {hits.length === 0 && !isFetching && !error && <NoResults query={query} />}
    </Screen>
  );
}

/** The query; the URL follows after URL_DELAY_MS. */
function useQueryParam(): [string, (text: string) => void] {
  const [params, setParams] = useSearchParams();
  const param = params.get("q") ?? "";
  const [text, setText] = useState(param);
  const lastWritten = useRef(param);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (param !== lastWritten.current) setText(param);
    lastWritten.current = param;
  }, [param]);
  const { pathname } = useLocation();
  const update = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      if (isLeaving(pathname)) return;
      lastWritten.current = next;
      setParams(next ? { q: next } : {}, { replace: true });
    }, URL_DELAY_MS);
  };
  return [text, update];
}

function HitList({ name, icon: Icon, hits }: (typeof KINDS)[number] & { hits: Hit[] }) {
  if (hits.length === 0) return null;
  return (
    <section className="card">
      <header>
        <Icon size={16} aria-hidden />
        <h2 className="grow">{name}</h2>
        <span className="badge">{hits.length}</span>
      </header>
      <ul className="search-hits">
        {hits.map((hit, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: hits are not unique
          <li key={`${hitUrl(hit)} ${index}`}>
            <Link to={hitUrl(hit)}>
              <span className="row">
                <strong className="truncate bidi">{escapeText(hit.title, 120)}</strong>
                {hit.scopeName && (
                  <span className="soft truncate bidi">{escapeText(hit.scopeName, 60)}</span>
                )}
                <span className="badge">{hit.scope}</span>
                <span className="faint end">
                  <Time at={hit.at} />
                </span>
              </span>
              <span className="snippet bidi">{escapeText(hit.snippet, 400)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function NoResults({ query }: { query: string }) {
  if (query.length > 1) {
    return (
      <EmptyState icon={SearchX} title="No results">
        <p>Words match by prefix. Case and accents are ignored.</p>
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={FileText} title="Type to search">
      <p>Finds text in files, memories and sessions. Type at least 2 characters.</p>
    </EmptyState>
  );
}

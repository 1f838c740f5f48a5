// Transcript of one session.

import {
  type InfiniteData,
  type UseInfiniteQueryResult,
  useInfiniteQuery,
} from "@tanstack/react-query";
import { ArrowLeft, Download, RefreshCw } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { type Transcript, transcriptQuery, transcriptUrl } from "../../api/transcripts";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { QueryResult } from "../../components/query-states";
import { useTitle } from "../../components/screen";
import { Time } from "../../components/time";
import { useAgent } from "../agents/agent-context";
import { Conversation } from "./conversation";

type Pages = InfiniteData<Transcript>;

export default function SessionScreen() {
  const { id } = useAgent();
  const { sid = "" } = useParams();
  const query = useInfiniteQuery(transcriptQuery(id, sid));
  useTitle("Session");
  return (
    <section className="stack" aria-labelledby="session-heading">
      <Link className="back row" to={`/agents/${encodeURIComponent(id)}/sessions`}>
        <ArrowLeft size={14} aria-hidden /> Sessions
      </Link>
      <QueryResult query={query}>{(pages) => <Session pages={pages} query={query} />}</QueryResult>
    </section>
  );
}

interface SessionProps {
  pages: Pages;
  query: UseInfiniteQueryResult<Pages>;
}

function Session({ pages, query }: SessionProps) {
  const [params, setParams] = useSearchParams();
  const searchText = params.get("q") ?? "";
  const targetEntry = Number(params.get("entry")) || null;
  const session = pages.pages.at(-1) as Transcript;
  const entries = pages.pages.flatMap((page) => page.entries);
  useLoadUntil(query, targetEntry !== null && entries.length < targetEntry);
  const search = (text: string) =>
    setParams(text ? { q: text } : {}, { replace: true, preventScrollReset: true });
  return (
    <>
      <SessionHeader session={session}>
        <Button icon={RefreshCw} busy={query.isFetching} onClick={() => void query.refetch()}>
          Refresh
        </Button>
      </SessionHeader>
      <div className="session-search">
        <SearchField label="Search in this session" value={searchText} onChange={search} />
      </div>
      <Conversation
        entries={entries}
        session={session}
        isComplete={!query.hasNextPage}
        query={searchText.trim()}
        targetEntry={targetEntry}
      />
      {query.hasNextPage && (
        <div className="row">
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Load more
          </Button>
          <span className="faint">
            {entries.length.toLocaleString("en")} of {session.entryCount.toLocaleString("en")}
          </span>
        </div>
      )}
    </>
  );
}

/** Loads pages while `needsMore` is true. */
function useLoadUntil(query: UseInfiniteQueryResult<Pages>, needsMore: boolean) {
  const { hasNextPage, isFetching, fetchNextPage } = query;
  useEffect(() => {
    if (needsMore && hasNextPage && !isFetching) void fetchNextPage();
  }, [needsMore, hasNextPage, isFetching, fetchNextPage]);
}

function SessionHeader({ session, children }: { session: Transcript; children: ReactNode }) {
  const { id, agentId, sourcePlugin, scope, startedAt, endedAt, entryCount } = session;
  return (
    <div className="row wrap">
      <div className="grow stack tight">
        <div className="row wrap">
          <h2 id="session-heading" className="bidi">
            {escapeText(sourcePlugin || "Session", 60)}
          </h2>
          <span className="badge">{scope}</span>
          <span className={endedAt ? "badge" : "badge good"}>{endedAt ? "closed" : "open"}</span>
        </div>
        <div className="faint">
          {entryCount.toLocaleString("en")} {entryCount === 1 ? "entry" : "entries"}, started{" "}
          <Time at={startedAt} />
          {endedAt && (
            <>
              , closed <Time at={endedAt} />
            </>
          )}
        </div>
      </div>
      {children}
      <a className="button" href={transcriptUrl(agentId, id)} download={`${id}.jsonl`}>
        <Download size={16} aria-hidden />
        JSONL
      </a>
    </div>
  );
}

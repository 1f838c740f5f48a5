// One session as the conversation that it was.

import {
  type InfiniteData,
  type UseInfiniteQueryResult,
  useInfiniteQuery,
} from "@tanstack/react-query";
import { ArrowLeft, Download, RefreshCw } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { linesOf, type Transcript, transcriptQuery } from "../../api/transcripts";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { Shown } from "../../components/query-states";
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
      <Shown query={query}>{(pages) => <Session pages={pages} query={query} />}</Shown>
    </section>
  );
}

interface SessionProps {
  pages: Pages;
  query: UseInfiniteQueryResult<Pages>;
}

function Session({ pages, query }: SessionProps) {
  const [params, setParams] = useSearchParams();
  const words = params.get("q") ?? "";
  const wanted = Number(params.get("entry")) || null;
  const session = pages.pages.at(-1) as Transcript;
  const entries = pages.pages.flatMap((page) => page.entries);
  useReach(query, wanted !== null && entries.length < wanted);
  const search = (text: string) =>
    setParams(text ? { q: text } : {}, { replace: true, preventScrollReset: true });
  return (
    <>
      <Head session={session}>
        <Button icon={RefreshCw} busy={query.isFetching} onClick={() => void query.refetch()}>
          Refresh
        </Button>
      </Head>
      <div className="session-search">
        <SearchField label="Search in this session" value={words} onChange={search} />
      </div>
      <Conversation
        entries={entries}
        session={session}
        isWhole={!query.hasNextPage}
        words={words.trim()}
        wanted={wanted}
      />
      {query.hasNextPage && (
        <div className="row">
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            More entries
          </Button>
          <span className="faint">
            {entries.length.toLocaleString("en")} of {session.entryCount.toLocaleString("en")}
          </span>
        </div>
      )}
    </>
  );
}

/** Asks for page after page until what is wanted is among them. */
function useReach(query: UseInfiniteQueryResult<Pages>, isShort: boolean) {
  const { hasNextPage, isFetching, fetchNextPage } = query;
  useEffect(() => {
    if (isShort && hasNextPage && !isFetching) void fetchNextPage();
  }, [isShort, hasNextPage, isFetching, fetchNextPage]);
}

function Head({ session, children }: { session: Transcript; children: ReactNode }) {
  const { id, agentId, sourcePlugin, scope, startedAt, endedAt, entryCount } = session;
  return (
    <div className="row wrap">
      <div className="grow stack tight">
        <div className="row wrap">
          <h2 id="session-heading" className="bidi">
            {plain(sourcePlugin || "Session", 60)}
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
      <a className="button" href={linesOf(agentId, id)} download={`${id}.jsonl`}>
        <Download size={16} aria-hidden />
        JSONL
      </a>
    </div>
  );
}

// Why a run answered as it did: its prompt block by block, with author and review of each file.

import { useQuery } from "@tanstack/react-query";
import { HelpCircle } from "lucide-react";
import { Link, useSearchParams } from "react-router";
import {
  type EntryPreview,
  type FileProvenance,
  type Provenance,
  provenanceQuery,
} from "../../api/provenance";
import type { Run } from "../../api/runs";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { layerOf } from "../prompt/layer";
import { entryUrl } from "./run-time-line";

export function RunWhy({ run }: { run: Run }) {
  const provenance = useQuery(provenanceQuery(run.runId));
  return (
    <QueryResult query={provenance}>
      {(chain) => (
        <div className="stack">
          <Answers chain={chain} run={run} />
          {chain.prompt ? (
            <BlockTable chain={chain} prompt={chain.prompt} />
          ) : (
            <EmptyState icon={HelpCircle} title="No prompt">
              <p>The snapshot was deleted, or the prompt cannot be assembled.</p>
            </EmptyState>
          )}
        </div>
      )}
    </QueryResult>
  );
}

/** The entry that the reader came from, or all answers of the run. */
function Answers({ chain, run }: { chain: Provenance; run: Run }) {
  const [params] = useSearchParams();
  const entry = params.get("entry");
  const answers = chain.entries.filter((item) =>
    entry ? `${item.sessionId}:${item.number}` === entry : item.role === "assistant",
  );
  if (answers.length === 0) return null;
  return (
    <section className="card" aria-labelledby="answers-heading">
      <header>
        <h2 id="answers-heading" className="grow">
          {entry ? "Answer" : "Answers"}
        </h2>
        {entry && <Link to="?view=why">All answers of the run</Link>}
      </header>
      <ol className="event-list">
        {answers.map((item) => (
          <AnswerRow key={`${item.sessionId} ${item.number}`} entry={item} run={run} />
        ))}
      </ol>
      {chain.moreEntries && <p className="card-body faint">The time line has all entries.</p>}
    </section>
  );
}

function AnswerRow({ entry, run }: { entry: EntryPreview; run: Run }) {
  return (
    <li>
      <Link className="grow bidi" to={entryUrl(run.agentId ?? "", entry.sessionId, entry.number)}>
        {escapeText(entry.preview, 200) || "(no text)"}
        {entry.truncated && "…"}
      </Link>
      <span className="faint">
        <Time at={entry.timestamp} />
      </span>
    </li>
  );
}

function BlockTable({
  chain,
  prompt,
}: {
  chain: Provenance;
  prompt: NonNullable<Provenance["prompt"]>;
}) {
  const files = new Map(chain.files.map((file) => [file.path, file]));
  return (
    <div className="table-wrap">
      <table className="table why-table" aria-label="Prompt blocks">
        <thead>
          <tr>
            <th scope="col">Block</th>
            <th scope="col">File</th>
            <th scope="col">Written by</th>
            <th scope="col" className="only-large">
              Reason
            </th>
            <th scope="col">Accepted by</th>
            <th scope="col" className="number only-large">
              Tokens
            </th>
          </tr>
        </thead>
        <tbody>
          {prompt.blocks.map((block) => (
            <tr key={`${block.name} ${block.path}`}>
              <td>
                <strong className="bidi">{escapeText(block.name, 80)}</strong>
                {block.kept !== "kept" && <span className="badge">{block.kept}</span>}
              </td>
              <FileCells file={files.get(block.path)} path={block.path} />
              <td className="number only-large">{block.tokens.toLocaleString("en")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function FileCells({ file, path }: { file: FileProvenance | undefined; path: string }) {
  if (!file)
    return (
      <>
        <td className="bidi faint">{escapeText(path, 80)}</td>
        <td className="faint">—</td>
        <td className="faint only-large">—</td>
        <td className="faint">—</td>
      </>
    );
  const { written, review, version, source } = file;
  return (
    <>
      <td>
        <Link className="bidi" to={`?view=files&file=${encodeURIComponent(path)}`}>
          {escapeText(path, 80)}
        </Link>
        <div className="faint">
          v{version}, {layerOf(source).name}
        </div>
      </td>
      <td>
        {written ? (
          <>
            <span className="bidi">{escapeText(written.author.name ?? written.author.id, 60)}</span>
            <div className="faint">
              <Time at={written.writtenAt} />
            </div>
          </>
        ) : (
          <span className="faint">erased</span>
        )}
      </td>
      <td className="only-large bidi">{escapeText(written?.reason ?? "", 200) || "—"}</td>
      <td>
        {review?.kind === "accepted" || review?.kind === "rolled-back" ? (
          <span className="bidi">{escapeText(review.by.name ?? review.by.id, 60)}</span>
        ) : (
          <span className="faint">{review ? review.kind : "—"}</span>
        )}
      </td>
    </>
  );
}

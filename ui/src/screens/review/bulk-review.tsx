// A template's pinned file under review for all who follow it: one look, one decision.

import { CheckCheck } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { plain } from "../../components/escape-text";
import { Empty, Loading, Refused } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { FileReview } from "./file-review";
import { type FileWaiting, filesWaiting, useFollowers } from "./followers";

export default function BulkReview() {
  const { templateId = "" } = useParams();
  const [working, setWorking] = useState(false);
  const { query, followers, template, reading } = useFollowers(templateId, working);
  const files = useMemo(() => filesWaiting(followers), [followers]);
  const [params] = useSearchParams();
  const path = params.get("file") ?? files[0]?.path ?? "";
  const name = plain(template?.name ?? templateId, 60);
  const under = template && (
    <>
      For the agents that follow{" "}
      <Link className="bidi" to={`/agent-templates/${encodeURIComponent(templateId)}`}>
        {name}
      </Link>
    </>
  );
  return (
    <Screen title={path ? `Review ${plain(path, 80)} for all` : "Review for all"} under={under}>
      {query.isError && <Refused error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading what="Reading where the agents stand" />}
      {query.data && !template && <p>There is no such template.</p>}
      {reading && <Reading done={followers.length} total={template?.followerCount ?? 0} />}
      {files.length > 1 && <Files files={files} path={path} />}
      {template && !reading && (
        <FileReview
          key={path}
          templateId={templateId}
          path={path}
          file={files.find((file) => file.path === path)}
          none={<NothingWaits followers={template.followerCount ?? 0} />}
          onWork={setWorking}
        />
      )}
    </Screen>
  );
}

function Reading({ done, total }: { done: number; total: number }) {
  return (
    <label className="stack tight">
      <span className="faint">
        Reading where {total.toLocaleString("en")} agents stand: {done.toLocaleString("en")}
      </span>
      <progress className="progress" value={done} max={Math.max(total, 1)} />
    </label>
  );
}

function Files({ files, path }: { files: FileWaiting[]; path: string }) {
  return (
    <nav className="tabs" aria-label="Files that wait">
      {files.map((file) => (
        <Link
          key={file.path}
          to={`?file=${encodeURIComponent(file.path)}`}
          className={file.path === path ? "on" : ""}
          aria-current={file.path === path ? "page" : undefined}
        >
          {plain(file.path, 80)} <span className="badge update">{file.count}</span>
        </Link>
      ))}
    </nav>
  );
}

function NothingWaits({ followers }: { followers: number }) {
  return (
    <Empty icon={CheckCheck} title="Nothing waits for a review here">
      <p>
        {followers === 0
          ? "No agent follows this template yet."
          : `All ${followers.toLocaleString("en")} agents are at what is offered.`}{" "}
        When somebody edits a pinned file such as GUARDRAILS.md, it is offered here before any agent
        has it.
      </p>
    </Empty>
  );
}

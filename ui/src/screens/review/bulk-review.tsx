// A template's pinned file under review for all who follow it: one look, one decision.

import { CheckCheck } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { escapeText } from "../../components/escape-text";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { FileReview } from "./file-review";
import { groupPendingFiles, type PendingFile, useFollowers } from "./followers";

export default function BulkReview() {
  const { templateId = "" } = useParams();
  const [isAccepting, setAccepting] = useState(false);
  const { query, followers, template, isLoading } = useFollowers(templateId, isAccepting);
  const files = useMemo(() => groupPendingFiles(followers), [followers]);
  const [params] = useSearchParams();
  const path = params.get("file") ?? files[0]?.path ?? "";
  const name = escapeText(template?.name ?? templateId, 60);
  const subtitle = template && (
    <>
      For the agents that follow{" "}
      <Link className="bidi" to={`/agent-templates/${encodeURIComponent(templateId)}`}>
        {name}
      </Link>
    </>
  );
  return (
    <Screen
      title={path ? `Review ${escapeText(path, 80)} for all` : "Review for all"}
      subtitle={subtitle}
    >
      {query.isError && <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.isPending && <Loading label="Reading where the agents stand" />}
      {query.data && !template && <p>There is no such template.</p>}
      {isLoading && (
        <LoadingProgress loaded={followers.length} total={template?.followerCount ?? 0} />
      )}
      {files.length > 1 && <FileTabs files={files} path={path} />}
      {template && !isLoading && (
        <FileReview
          key={path}
          templateId={templateId}
          path={path}
          file={files.find((file) => file.path === path)}
          emptyState={<NothingPending followers={template.followerCount ?? 0} />}
          onAcceptingChange={setAccepting}
        />
      )}
    </Screen>
  );
}

function LoadingProgress({ loaded, total }: { loaded: number; total: number }) {
  return (
    <label className="stack tight">
      <span className="faint">
        Reading where {total.toLocaleString("en")} agents stand: {loaded.toLocaleString("en")}
      </span>
      <progress className="progress" value={loaded} max={Math.max(total, 1)} />
    </label>
  );
}

function FileTabs({ files, path }: { files: PendingFile[]; path: string }) {
  return (
    <nav className="tabs" aria-label="Files that wait">
      {files.map((file) => (
        <Link
          key={file.path}
          to={`?file=${encodeURIComponent(file.path)}`}
          className={file.path === path ? "on" : ""}
          aria-current={file.path === path ? "page" : undefined}
        >
          {escapeText(file.path, 80)} <span className="badge update">{file.count}</span>
        </Link>
      ))}
    </nav>
  );
}

function NothingPending({ followers }: { followers: number }) {
  return (
    <EmptyState icon={CheckCheck} title="Nothing waits for a review here">
      <p>
        {followers === 0
          ? "No agent follows this template yet."
          : `All ${followers.toLocaleString("en")} agents are at what is offered.`}{" "}
        When somebody edits a pinned file such as GUARDRAILS.md, it is offered here before any agent
        has it.
      </p>
    </EmptyState>
  );
}

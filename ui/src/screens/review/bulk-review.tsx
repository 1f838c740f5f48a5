// Review of a pinned file of a template, or of the defaults, for all agents that inherit it.

import { CheckCheck } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { DEFAULTS_ID } from "../../api/pins";
import { escapeText } from "../../components/escape-text";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { FileReview } from "./file-review";
import { groupPendingFiles, type PendingFile, useFollowers } from "./followers";

export default function BulkReview() {
  const { templateId = DEFAULTS_ID } = useParams();
  const [isAccepting, setAccepting] = useState(false);
  const { query, followers, template, isLoading } = useFollowers(templateId, isAccepting);
  const files = useMemo(() => groupPendingFiles(followers), [followers]);
  const [params] = useSearchParams();
  const path = params.get("file") ?? files[0]?.path ?? "";
  const name = escapeText(template?.name ?? templateId, 60);
  const subtitle = template && (
    <>
      {templateId === DEFAULTS_ID ? "Agents that inherit from the" : "Agents of template"}{" "}
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
      {query.isPending && <Loading label="Loading agents" />}
      {query.data && !template && <p>Template not found.</p>}
      {isLoading && (
        <LoadingProgress loaded={followers.length} total={template?.followerCount ?? null} />
      )}
      {files.length > 1 && <FileTabs files={files} path={path} />}
      {template && !isLoading && (
        <FileReview
          key={path}
          templateId={templateId}
          path={path}
          file={files.find((file) => file.path === path)}
          emptyState={<NothingPending followers={template.followerCount ?? followers.length} />}
          onAcceptingChange={setAccepting}
        />
      )}
    </Screen>
  );
}

function LoadingProgress({ loaded, total }: { loaded: number; total: number | null }) {
  return (
    <label className="stack tight">
      <span className="faint">
        Loading agents: {loaded.toLocaleString("en")}
        {total !== null && ` of ${total.toLocaleString("en")}`}
      </span>
      <progress
        className="progress"
        {...(total !== null && { value: loaded, max: Math.max(total, 1) })}
      />
    </label>
  );
}

function FileTabs({ files, path }: { files: PendingFile[]; path: string }) {
  return (
    <nav className="tabs" aria-label="Files to review">
      {files.map((file) => (
        <Link
          key={file.path}
          to={`?file=${encodeURIComponent(file.path)}`}
          className={file.path === path ? "active" : ""}
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
    <EmptyState icon={CheckCheck} title="Nothing to review">
      <p>
        {followers === 0
          ? "No agent inherits these files yet."
          : `All ${followers.toLocaleString("en")} agents are up to date.`}{" "}
        Changes to pinned files such as GUARDRAILS.md need review here before agents receive them.
      </p>
    </EmptyState>
  );
}

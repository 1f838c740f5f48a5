// Rendered preview of a draft with its placeholders filled in.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import type { FileScope } from "../../api/files";
import { renderedDraftQuery, servedFileQuery } from "../../api/rendered-files";
import { ErrorNotice } from "../../components/query-states";
import { Markdown } from "../../editor";
import type { Draft } from "./use-draft";

interface PreviewProps {
  scope: FileScope;
  path: string;
  draft: Draft;
}

const isMarkdown = (path: string) => /\.(md|markdown|txt)$/i.test(path) || !/\.\w+$/.test(path);

export function Preview({ scope, path, draft }: PreviewProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable
    <section className="file-preview" aria-label="Preview" tabIndex={0}>
      {scope.kind === "agent" ? (
        <AgentPreview agentId={scope.id} path={path} draft={draft} />
      ) : (
        <PreviewContent path={path} text={draft.debounced.text} />
      )}
    </section>
  );
}

function AgentPreview({ agentId, path, draft }: { agentId: string; path: string; draft: Draft }) {
  const { isDirty, base, debounced: calm } = draft;
  const stored = useQuery({
    ...servedFileQuery(agentId, path, base.etag),
    enabled: !isDirty,
    placeholderData: keepPreviousData,
  });
  const drafted = useQuery({
    ...renderedDraftQuery(agentId, path, calm),
    enabled: isDirty,
    placeholderData: keepPreviousData,
  });
  const { data, error } = isDirty ? drafted : stored;
  if (error) return <ErrorNotice error={error} />;
  return <PreviewContent path={path} text={data ?? stored.data ?? calm.text} />;
}

function PreviewContent({ path, text }: { path: string; text: string }) {
  const deferred = useDeferredValue(text);
  if (!deferred.trim()) return <p className="preview-empty faint">Empty file</p>;
  if (!isMarkdown(path)) return <pre className="text preview-plain">{deferred}</pre>;
  return <Markdown text={deferred} />;
}

// Rendered preview of a draft with its placeholders filled in.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import type { FileScope } from "../../api/files";
import { renderedDraftQuery, servedFileQuery } from "../../api/rendered-files";
import { ErrorNotice } from "../../components/query-states";
import { AgentPicker } from "../../components/record-picker";
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
        <PreviewAs path={path} draft={draft} />
      )}
    </section>
  );
}

/** A shared file, as it is or with the values of an agent that is picked. */
function PreviewAs({ path, draft }: { path: string; draft: Draft }) {
  const [agentId, setAgentId] = useState("");
  return (
    <>
      <AgentPicker
        label="Preview as"
        emptyLabel="No agent: placeholders stay"
        value={agentId}
        onChange={setAgentId}
      />
      {agentId ? (
        <RenderedDraft agentId={agentId} path={path} draft={draft} />
      ) : (
        <PreviewContent path={path} text={draft.debounced.text} />
      )}
    </>
  );
}

function RenderedDraft({ agentId, path, draft }: { agentId: string; path: string; draft: Draft }) {
  const { data, error } = useQuery({
    ...renderedDraftQuery(agentId, path, draft.debounced),
    placeholderData: keepPreviousData,
  });
  if (error) return <ErrorNotice error={error} />;
  return <PreviewContent path={path} text={data ?? draft.debounced.text} />;
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

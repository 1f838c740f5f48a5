// What the agent will read: the draft with its placeholders filled in, as Markdown.

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue } from "react";
import type { Place } from "../../api/files";
import { renderedQuery, servedQuery } from "../../api/rendered-files";
import { Refused } from "../../components/query-states";
import { Markdown } from "../../editor";
import type { Draft } from "./use-draft";

interface PreviewProps {
  place: Place;
  path: string;
  draft: Draft;
}

const isMarkdown = (path: string) => /\.(md|markdown|txt)$/i.test(path) || !/\.\w+$/.test(path);

export function Preview({ place, path, draft }: PreviewProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so takes the focus for the arrows
    <section className="file-preview" aria-label="Preview" tabIndex={0}>
      {place.kind === "agent" ? (
        <Served agentId={place.id} path={path} draft={draft} />
      ) : (
        <Rendered path={path} text={draft.calm.text} />
      )}
    </section>
  );
}

function Served({ agentId, path, draft }: { agentId: string; path: string; draft: Draft }) {
  const { isDirty, base, calm } = draft;
  const stored = useQuery({
    ...servedQuery(agentId, path, base.etag),
    enabled: !isDirty,
    placeholderData: keepPreviousData,
  });
  const drafted = useQuery({
    ...renderedQuery(agentId, path, calm),
    enabled: isDirty,
    placeholderData: keepPreviousData,
  });
  const { data, error } = isDirty ? drafted : stored;
  if (error) return <Refused error={error} />;
  return <Rendered path={path} text={data ?? stored.data ?? calm.text} />;
}

function Rendered({ path, text }: { path: string; text: string }) {
  const deferred = useDeferredValue(text);
  if (!deferred.trim()) return <p className="preview-none faint">An empty file.</p>;
  if (!isMarkdown(path)) return <pre className="text preview-plain">{deferred}</pre>;
  return <Markdown text={deferred} />;
}

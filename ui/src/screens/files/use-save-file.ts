// Saves a draft: confirms overrides first and handles conflicts.

import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { DEFAULTS, type File, type FileScope, fileQuery, putFile, readFile } from "../../api/files";
import { Problem } from "../../api/problem";
import { toast } from "../../components/toast";
import type { TreeRow } from "./file-rows";
import type { Draft } from "./use-draft";

/** Confirmation that a save needs: overriding an inherited or a pinned file. */
export type OverrideKind = "override" | "pinned";

export interface Conflict {
  base: string;
  mine: string;
  /** Null if the file was deleted. */
  theirs: File | null;
}

const confirmedKey = (scope: FileScope) => `carrel-override-asked:${scope.id}`;
export const skipOverrideConfirmation = (scope: FileScope) =>
  localStorage.setItem(confirmedKey(scope), "1");

/** Confirmation that must be given before a save; null if none. */
export function requiredConfirmation(scope: FileScope, file: File): OverrideKind | null {
  if (scope.kind !== "agent" || file.source.startsWith("agent-override")) return null;
  if (file.class === "pinned") return "pinned";
  return localStorage.getItem(confirmedKey(scope)) ? null : "override";
}

/** Whether a template shows the file of the defaults. */
const isFromDefaults = (scope: FileScope, file: File) =>
  scope.kind === "template" && file.source === "defaults";

interface SaveRequest {
  text: string;
  /** Version that the text is based on; null creates the file. */
  base: File | null;
  reason: string;
}

/** Invalidates the queries that depend on a scope's files. */
export function refreshFiles(queries: QueryClient, scope: FileScope) {
  const isSingle = scope.kind === "agent" || scope.kind === "workspace";
  const keys = isSingle
    ? [["files", scope.kind, scope.id]]
    : [["files"], ["impact"], ["templates"]];
  for (const queryKey of [...keys, ["agents"], ["inbox"], ["prompt"], ["pins"]])
    void queries.invalidateQueries({ queryKey });
}

const isConflict = (error: unknown) =>
  error instanceof Problem && error.status === 409 && error.code === "workspace_conflict";

const nullIfNotFound = (error: unknown) => {
  if (error instanceof Problem && error.status === 404) return null;
  throw error;
};

export function useSaveFile(scope: FileScope, row: TreeRow, draft: Draft, isDeleted: boolean) {
  const queries = useQueryClient();
  const { path } = row;
  const [confirmation, setConfirmation] = useState<OverrideKind | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [warning, setWarning] = useState<string | null>(null);
  const [reason, setReason] = useState("");
  const key = fileQuery(scope, path).queryKey;
  const save = useMutation({
    meta: { skipErrorToast: true },
    onMutate: () => queries.cancelQueries({ queryKey: key }),
    mutationFn: ({ text, base, reason }: SaveRequest) =>
      putFile(scope, path, {
        content: text,
        reason,
        ...(base && !isFromDefaults(scope, base) ? { ifMatch: base.etag } : { ifNoneMatch: "*" }),
        ...(row.pinned && scope.kind === "agent" && { acceptTemplateUpdate: true }),
      }),
    onSuccess: ({ file, warning: newWarning }, { text }) => {
      queries.setQueryData(key, file);
      draft.onSaved(file, text);
      setConflict(null);
      setReason("");
      setWarning(newWarning ?? (file.content === text ? null : "redacted"));
      toast(`Saved ${file.path}, version ${file.version}`);
      refreshFiles(queries, scope);
    },
    onError: async (error, { text, base, reason }) => {
      if (!isConflict(error)) return;
      const theirs = await readFile(scope, path).catch(nullIfNotFound);
      const baseText = base?.content ?? "";
      if (theirs && theirs.content === baseText) save.mutate({ text, base: theirs, reason });
      else setConflict({ base: baseText, mine: text, theirs });
    },
  });
  const saveNow = (text = draft.text(), base: File | null = isDeleted ? null : draft.base) =>
    save.mutate({ text, base, reason });
  return {
    confirmation,
    setConfirmation,
    conflict,
    setConflict,
    warning,
    reason,
    setReason,
    isSaving: save.isPending,
    problem: save.isError && !isConflict(save.error) ? save.error : null,
    saveNow,
    /** Saves, or asks for confirmation first. */
    requestSave: () => {
      if ((!draft.isDirty && !isDeleted) || save.isPending) return;
      const required = isDeleted ? null : requiredConfirmation(scope, draft.base);
      if (required) setConfirmation(required);
      else saveNow();
    },
  };
}

/** Scope that a row's text is read from: the defaults for inherited files of a template. */
export const sourceScope = (scope: FileScope, row: TreeRow): FileScope =>
  scope.kind === "template" && row.inherited ? DEFAULTS : scope;

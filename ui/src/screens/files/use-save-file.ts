// From the pen to the store: asks what has to be asked first, and what to do where others were
// quicker.

import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { DEFAULTS, type File, fileQuery, type Place, putFile, readFile } from "../../api/files";
import { Problem } from "../../api/problem";
import { toast } from "../../components/toast";
import type { Row } from "./file-rows";
import type { Draft } from "./use-draft";

/** What is asked before a save: that an inherited file becomes the agent's own, or a pinned one. */
export type Question = "override" | "pinned";

export interface Conflict {
  base: string;
  mine: string;
  /** Null where the file was deleted meanwhile. */
  theirs: File | null;
}

const askedKey = (place: Place) => `carrel-override-asked:${place.id}`;
export const wontAskAgain = (place: Place) => localStorage.setItem(askedKey(place), "1");

/** Which question a save has to answer first. */
export function questionOf(place: Place, file: File): Question | null {
  if (place.kind !== "agent" || file.source.startsWith("agent-override")) return null;
  if (file.class === "pinned") return "pinned";
  return localStorage.getItem(askedKey(place)) ? null : "override";
}

/** A template shows what the defaults say of a file of which it says nothing itself. */
const isBorrowed = (place: Place, file: File) =>
  place.kind === "template" && file.source === "defaults";

interface Attempt {
  text: string;
  /** The file that it grew from; null makes a new one. */
  on: File | null;
  reason: string;
}

/** What is shown elsewhere of a place whose files changed is asked for again. */
export function refresh(queries: QueryClient, place: Place) {
  const own = place.kind === "agent" || place.kind === "workspace";
  const keys = own ? [["files", place.kind, place.id]] : [["files"], ["impact"], ["templates"]];
  for (const queryKey of [...keys, ["agents"], ["inbox"], ["prompt"], ["pins"]])
    void queries.invalidateQueries({ queryKey });
}

const isConflict = (error: unknown) =>
  error instanceof Problem && error.status === 409 && error.code === "workspace_conflict";

const orNothing = (error: unknown) => {
  if (error instanceof Problem && error.status === 404) return null;
  throw error;
};

export function useSaving(place: Place, row: Row, draft: Draft, gone: boolean) {
  const queries = useQueryClient();
  const { path } = row;
  const [question, ask] = useState<Question | null>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [warning, setWarning] = useState<string | null>(null);
  const [reason, setReason] = useState("");
  const key = fileQuery(place, path).queryKey;
  const save = useMutation({
    meta: { quiet: true },
    onMutate: () => queries.cancelQueries({ queryKey: key }),
    mutationFn: ({ text, on, reason }: Attempt) =>
      putFile(place, path, {
        content: text,
        reason,
        ...(on && !isBorrowed(place, on) ? { ifMatch: on.etag } : { ifNoneMatch: "*" }),
        ...(row.pinned && place.kind === "agent" && { acceptTemplateUpdate: true }),
      }),
    onSuccess: ({ file, warning: warned }, { text }) => {
      queries.setQueryData(key, file);
      draft.onSaved(file, text);
      setConflict(null);
      setReason("");
      setWarning(warned ?? (file.content === text ? null : "redacted"));
      toast(`Saved ${file.path}, version ${file.version}.`);
      refresh(queries, place);
    },
    onError: async (error, { text, on, reason }) => {
      if (!isConflict(error)) return;
      const theirs = await readFile(place, path).catch(orNothing);
      const base = on?.content ?? "";
      if (theirs && theirs.content === base) save.mutate({ text, on: theirs, reason });
      else setConflict({ base, mine: text, theirs });
    },
  });
  const attempt = (text = draft.text(), on: File | null = gone ? null : draft.base) =>
    save.mutate({ text, on, reason });
  return {
    question,
    ask,
    conflict,
    setConflict,
    warning,
    reason,
    setReason,
    isSaving: save.isPending,
    problem: save.isError && !isConflict(save.error) ? save.error : null,
    attempt,
    /** What ⌘S and the button do. */
    request: () => {
      if ((!draft.isDirty && !gone) || save.isPending) return;
      const asked = gone ? null : questionOf(place, draft.base);
      if (asked) ask(asked);
      else attempt();
    },
  };
}

/** Where a row's text is read: what the defaults say is theirs, though a template shows it. */
export const readingPlace = (place: Place, row: Row): Place =>
  place.kind === "template" && row.inherited ? DEFAULTS : place;

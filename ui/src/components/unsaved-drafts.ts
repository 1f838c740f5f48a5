// Unsaved drafts of the page, whose loss is confirmed before navigation.

import { useEffect } from "react";

export interface Draft {
  /** Name of what was edited, for the question. */
  name: string;
  isDirty: boolean;
}

const drafts = new Set<Draft>();

/** Unsaved drafts. */
export const dirtyDrafts = () => [...drafts].filter(({ isDirty }) => isDirty);
export const hasDrafts = () => dirtyDrafts().length > 0;

/** Registers a draft. Returns a function that unregisters it. */
export function registerDraft(draft: Draft): () => void {
  drafts.add(draft);
  return () => {
    drafts.delete(draft);
  };
}

/** Registers a draft while it has unsaved changes. */
export function useUnsavedDraft(isDirty: boolean, name: string): void {
  useEffect(() => (isDirty ? registerDraft({ name, isDirty: true }) : undefined), [isDirty, name]);
}

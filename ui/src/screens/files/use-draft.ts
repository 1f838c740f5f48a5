// Draft of a file: base version, dirty state, and newer versions saved by others.

import type { Text } from "@codemirror/state";
import { useEffect, useRef, useState } from "react";
import type { File } from "../../api/files";
import {
  detectLineEnding,
  normalizeLineEndings,
  restoreLineEndings,
} from "../../editor/line-endings";
import { mergeWithoutConflict } from "./merge";

const SETTLE_MS = 250;

export interface Draft {
  /** The stored version that the draft is based on. */
  base: File;
  /** Text for the editor; a new revision replaces its content. */
  initial: RevisedText;
  /** The text SETTLE_MS after the last edit, for previews. */
  debounced: RevisedText;
  isDirty: boolean;
  /** A newer stored version with different content, or null. */
  newer: File | null;
  onEdit: (doc: Text) => void;
  /** The current text with the file's line endings. */
  text: () => string;
  /** Rebases the draft on the saved version; edits made since the request stay. */
  onSaved: (stored: File, sent: string) => void;
  /** Replaces base and text. */
  replace: (base: File, text: string) => void;
}

interface RevisedText {
  text: string;
  revision: number;
}

const contentOf = (file: File) => file.content ?? "";
const nextRevision = (previous: RevisedText, text: string): RevisedText => ({
  text,
  revision: previous.revision + 1,
});

export function useDraft(file: File): Draft {
  const [base, setBase] = useState(file);
  const [initial, setInitial] = useState({
    text: normalizeLineEndings(contentOf(file)),
    revision: 0,
  });
  const [debounced, setDebounced] = useState(initial);
  const [isDirty, setDirty] = useState(false);
  const [newer, setNewer] = useState<File | null>(null);
  const doc = useRef<Text | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  const editorText = () => doc.current?.toString() ?? initial.text;
  const settle = (text: string, base: File) => {
    setDebounced((previous) => (previous.text === text ? previous : nextRevision(previous, text)));
    setDirty(text !== normalizeLineEndings(contentOf(base)));
  };
  const onEdit = (editedDoc: Text) => {
    doc.current = editedDoc;
    setDirty(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => settle(editedDoc.toString(), base), SETTLE_MS);
  };
  const replace = (base: File, content: string) => {
    const text = normalizeLineEndings(content);
    clearTimeout(timer.current);
    doc.current = null;
    setBase(base);
    setNewer(null);
    setInitial((previous) => nextRevision(previous, text));
    settle(text, base);
  };
  const onSaved = (stored: File, sent: string) => {
    const currentText = editorText();
    const sentText = normalizeLineEndings(sent);
    const mergedDraft =
      currentText === sentText
        ? null
        : mergeWithoutConflict(sentText, currentText, normalizeLineEndings(contentOf(stored)));
    replace(stored, currentText === sentText ? contentOf(stored) : (mergedDraft ?? currentText));
  };
  const onStored = (stored: File) => {
    if (stored.etag === base.etag) return;
    if (!isDirty) replace(stored, contentOf(stored));
    else if (contentOf(stored) === contentOf(base)) setBase(stored);
    else setNewer(stored);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when a new version is stored
  useEffect(() => onStored(file), [file]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a clean draft takes the newer version
  useEffect(() => {
    if (newer && !isDirty) replace(newer, contentOf(newer));
  }, [newer, isDirty]);

  const text = () => restoreLineEndings(editorText(), detectLineEnding(contentOf(base)));
  return { base, initial, debounced, isDirty, newer, onEdit, text, onSaved, replace };
}

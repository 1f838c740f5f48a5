// The text under the pen: what it grew from, whether it differs, and what others did meanwhile.

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
  /** The stored file that the draft grew from. */
  base: File;
  /** What the editor is given; another stamp puts it in place of what is there. */
  initial: RevisedText;
  /** The text a moment after the last key, for all that need not follow every key. */
  settled: RevisedText;
  isDirty: boolean;
  /** What others stored since, where it differs from what the draft grew from. */
  newer: File | null;
  onEdit: (doc: Text) => void;
  /** The text of this very moment, as it would be stored. */
  text: () => string;
  /** Takes over what was stored; what was typed since it was sent stays. */
  onSaved: (stored: File, sent: string) => void;
  /** Puts a text into the editor that grew from a stored file. */
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
  const [settled, setSettled] = useState(initial);
  const [isDirty, setDirty] = useState(false);
  const [newer, setNewer] = useState<File | null>(null);
  const doc = useRef<Text | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  const editorText = () => doc.current?.toString() ?? initial.text;
  const settle = (text: string, base: File) => {
    setSettled((previous) => (previous.text === text ? previous : nextRevision(previous, text)));
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is stored anew is heard of
  useEffect(() => onStored(file), [file]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: with nothing to lose, the newer is taken
  useEffect(() => {
    if (newer && !isDirty) replace(newer, contentOf(newer));
  }, [newer, isDirty]);

  const text = () => restoreLineEndings(editorText(), detectLineEnding(contentOf(base)));
  return { base, initial, settled, isDirty, newer, onEdit, text, onSaved, replace };
}

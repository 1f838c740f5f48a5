// The text under the pen: what it grew from, whether it differs, and what others did meanwhile.

import type { Text } from "@codemirror/state";
import { useEffect, useRef, useState } from "react";
import type { File } from "../../api/files";
import { asStored, endingOf, forEditing } from "../../editor/line-endings";
import { mergedText } from "./merge";

const CALM = 250;

export interface Draft {
  /** The stored file that the draft grew from. */
  base: File;
  /** What the editor is given; another stamp puts it in place of what is there. */
  start: Stamped;
  /** The text a moment after the last key, for all that need not follow every key. */
  calm: Stamped;
  isDirty: boolean;
  /** What others stored since, where it differs from what the draft grew from. */
  meanwhile: File | null;
  onEdit: (doc: Text) => void;
  /** The text of this very moment, as it would be stored. */
  text: () => string;
  /** Takes over what was stored; what was typed since it was sent stays. */
  onSaved: (stored: File, sent: string) => void;
  /** Puts a text into the editor that grew from a stored file. */
  replace: (on: File, text: string) => void;
}

interface Stamped {
  text: string;
  stamp: number;
}

const contentOf = (file: File) => file.content ?? "";
const next = (before: Stamped, text: string): Stamped => ({ text, stamp: before.stamp + 1 });

export function useDraft(file: File): Draft {
  const [base, setBase] = useState(file);
  const [start, setStart] = useState({ text: forEditing(contentOf(file)), stamp: 0 });
  const [calm, setCalm] = useState(start);
  const [isDirty, setDirty] = useState(false);
  const [meanwhile, setMeanwhile] = useState<File | null>(null);
  const doc = useRef<Text | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  const shown = () => doc.current?.toString() ?? start.text;
  const settle = (text: string, on: File) => {
    setCalm((before) => (before.text === text ? before : next(before, text)));
    setDirty(text !== forEditing(contentOf(on)));
  };
  const onEdit = (now: Text) => {
    doc.current = now;
    setDirty(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => settle(now.toString(), base), CALM);
  };
  const replace = (on: File, given: string) => {
    const text = forEditing(given);
    clearTimeout(timer.current);
    doc.current = null;
    setBase(on);
    setMeanwhile(null);
    setStart((before) => next(before, text));
    settle(text, on);
  };
  const onSaved = (stored: File, sent: string) => {
    const now = shown();
    const before = forEditing(sent);
    const joined = now === before ? null : mergedText(before, now, forEditing(contentOf(stored)));
    replace(stored, now === before ? contentOf(stored) : (joined ?? now));
  };
  const onStored = (stored: File) => {
    if (stored.etag === base.etag) return;
    if (!isDirty) replace(stored, contentOf(stored));
    else if (contentOf(stored) === contentOf(base)) setBase(stored);
    else setMeanwhile(stored);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: only what is stored anew is heard of
  useEffect(() => onStored(file), [file]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: with nothing to lose, the newer is taken
  useEffect(() => {
    if (meanwhile && !isDirty) replace(meanwhile, contentOf(meanwhile));
  }, [meanwhile, isDirty]);

  const text = () => asStored(shown(), endingOf(contentOf(base)));
  return { base, start, calm, isDirty, meanwhile, onEdit, text, onSaved, replace };
}

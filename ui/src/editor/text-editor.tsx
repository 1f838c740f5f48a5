// The editor of raw text. It is loaded when it is first needed.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { markdown } from "@codemirror/lang-markdown";
import { searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Text, Transaction } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { useEffect, useRef } from "react";
import { looks } from "./editor-theme";

interface TextEditorProps {
  /** What it begins with; another text replaces what is there and can be undone. */
  text: string;
  /** Another stamp puts the text in place of what is there, were it the same text as before. */
  stamp?: number;
  label: string;
  onChange?: (text: string) => void;
  /** Told of every change without making a string of it, which long texts need. */
  onEdit?: (doc: Text) => void;
  onSave?: () => void;
  readOnly?: boolean;
}

const tied = EditorView.contentAttributes;

/** Browsers would carry the looks of what is typed over into the new text, as an inline style. */
const typedOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data } = event;
    if (inputType !== "insertText" || data === null || view.composing || view.state.readOnly)
      return false;
    if (view.state.selection.ranges.every((range) => range.empty)) return false;
    const change = view.state.replaceSelection(data);
    view.dispatch(change, { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

/** Only what differs is replaced, so that the cursor and the scroll stay where they are. */
export function changeBetween(before: string, after: string) {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return { from: head, to: before.length - tail, insert: after.slice(head, after.length - tail) };
}

/** Edits one text. Escape, then Tab, leaves it by the keyboard; Tab alone leaves it too. */
export default function TextEditor(props: TextEditorProps) {
  const { text, stamp, label, onChange, onEdit, onSave, readOnly } = props;
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const told = useRef({ onChange, onEdit, onSave });
  told.current = { onChange, onEdit, onSave };
  const locked = useRef(new Compartment());

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; what changes is handed on below
  useEffect(() => {
    if (!place.current) return;
    const save = () => {
      told.current.onSave?.();
      return true;
    };
    view.current = new EditorView({
      parent: place.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          EditorView.lineWrapping,
          markdown(),
          looks,
          typedOver,
          tied.of({ "aria-label": label, spellcheck: "true", tabindex: "0" }),
          keymap.of([{ key: "Mod-s", run: save, preventDefault: true }]),
          keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap]),
          locked.current.of(EditorState.readOnly.of(Boolean(readOnly))),
          EditorView.updateListener.of((update) => {
            const ours = update.transactions.some((each) => each.annotation(Transaction.remote));
            if (!update.docChanged || ours) return;
            told.current.onEdit?.(update.state.doc);
            told.current.onChange?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another stamp asks for the same text again
  useEffect(() => {
    const shown = view.current;
    if (!shown || shown.state.doc.toString() === text) return;
    shown.dispatch({
      changes: changeBetween(shown.state.doc.toString(), text),
      annotations: Transaction.remote.of(true),
    });
  }, [text, stamp]);

  useEffect(() => {
    const effects = locked.current.reconfigure(EditorState.readOnly.of(Boolean(readOnly)));
    view.current?.dispatch({ effects });
  }, [readOnly]);

  return <div ref={place} className="text-editor" />;
}

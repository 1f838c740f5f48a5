// Text editor, based on CodeMirror.

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
import { editorTheme } from "./editor-theme";

interface TextEditorProps {
  /** Initial text; a new value replaces the content and can be undone. */
  text: string;
  /** A new revision replaces the content even if `text` is unchanged. */
  revision?: number;
  label: string;
  onChange?: (text: string) => void;
  /** Called on every change with the document, which avoids building a string. */
  onEdit?: (doc: Text) => void;
  onSave?: () => void;
  readOnly?: boolean;
}

const contentAttributes = EditorView.contentAttributes;

/** Replaces the selection itself: browsers would copy its style inline into the new text. */
const replaceSelectionOnInput = EditorView.domEventHandlers({
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

/** The smallest change between two texts, so that cursor and scroll position stay. */
export function changeBetween(oldText: string, newText: string) {
  const shorter = Math.min(oldText.length, newText.length);
  let head = 0;
  while (head < shorter && oldText[head] === newText[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && oldText.at(-1 - tail) === newText.at(-1 - tail)) tail += 1;
  return {
    from: head,
    to: oldText.length - tail,
    insert: newText.slice(head, newText.length - tail),
  };
}

/** Editor of one text. Tab moves the focus out of it. */
export default function TextEditor(props: TextEditorProps) {
  const { text, revision, label, onChange, onEdit, onSave, readOnly } = props;
  const container = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const callbacks = useRef({ onChange, onEdit, onSave });
  callbacks.current = { onChange, onEdit, onSave };
  const readOnlyCompartment = useRef(new Compartment());

  // biome-ignore lint/correctness/useExhaustiveDependencies: created once; later changes are applied by the effects below
  useEffect(() => {
    if (!container.current) return;
    const save = () => {
      callbacks.current.onSave?.();
      return true;
    };
    view.current = new EditorView({
      parent: container.current,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          EditorView.lineWrapping,
          markdown(),
          editorTheme,
          replaceSelectionOnInput,
          contentAttributes.of({ "aria-label": label, spellcheck: "true", tabindex: "0" }),
          keymap.of([{ key: "Mod-s", run: save, preventDefault: true }]),
          keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap]),
          readOnlyCompartment.current.of(EditorState.readOnly.of(Boolean(readOnly))),
          EditorView.updateListener.of((update) => {
            const isRemote = update.transactions.some((transaction) =>
              transaction.annotation(Transaction.remote),
            );
            if (!update.docChanged || isRemote) return;
            callbacks.current.onEdit?.(update.state.doc);
            callbacks.current.onChange?.(update.state.doc.toString());
          }),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new revision re-applies the same text
  useEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === text) return;
    editor.dispatch({
      changes: changeBetween(editor.state.doc.toString(), text),
      annotations: Transaction.remote.of(true),
    });
  }, [text, revision]);

  useEffect(() => {
    const effects = readOnlyCompartment.current.reconfigure(
      EditorState.readOnly.of(Boolean(readOnly)),
    );
    view.current?.dispatch({ effects });
  }, [readOnly]);

  return <div ref={container} className="text-editor" />;
}

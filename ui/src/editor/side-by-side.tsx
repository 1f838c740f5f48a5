// Two texts beside one another, what differs marked: left what was, right what would be.

import { markdown } from "@codemirror/lang-markdown";
import { MergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { looks } from "./editor-theme";

interface SideBySideProps {
  left: { label: string; text: string };
  right: { label: string; text: string };
}

const fixed = [
  EditorState.readOnly.of(true),
  EditorView.lineWrapping,
  lineNumbers(),
  markdown(),
  looks,
];

export default function SideBySide({ left, right }: SideBySideProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const side = ({ label, text }: SideBySideProps["left"]) => ({
      doc: text,
      extensions: [
        ...fixed,
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      ],
    });
    const view = new MergeView({
      parent: place.current,
      a: side(left),
      b: side(right),
      collapseUnchanged: { margin: 3, minSize: 6 },
    });
    return () => view.destroy();
  }, [left, right]);
  return <div ref={place} className="side-by-side" />;
}

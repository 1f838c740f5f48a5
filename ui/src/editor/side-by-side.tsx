// Side-by-side diff of two texts: old on the left, new on the right.

import { markdown } from "@codemirror/lang-markdown";
import { MergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { editorTheme } from "./editor-theme";

interface SideBySideProps {
  left: { label: string; text: string };
  right: { label: string; text: string };
}

const sharedExtensions = [
  EditorState.readOnly.of(true),
  EditorView.lineWrapping,
  lineNumbers(),
  markdown(),
  editorTheme,
];

export default function SideBySide({ left, right }: SideBySideProps) {
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!container.current) return;
    const side = ({ label, text }: SideBySideProps["left"]) => ({
      doc: text,
      extensions: [
        ...sharedExtensions,
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
      ],
    });
    const view = new MergeView({
      parent: container.current,
      a: side(left),
      b: side(right),
      collapseUnchanged: { margin: 3, minSize: 6 },
    });
    return () => view.destroy();
  }, [left, right]);
  return <div ref={container} className="side-by-side" />;
}

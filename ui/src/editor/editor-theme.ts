// CodeMirror theme, built from the console's style tokens.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import {
  Decoration,
  EditorView,
  MatchDecorator,
  ViewPlugin,
  type ViewUpdate,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";

const NONCE = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

const theme = EditorView.theme({
  "&": {
    height: "100%",
    fontSize: "13px",
    backgroundColor: "var(--surface)",
    color: "var(--text)",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 16px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--text-faint)", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent-soft) 35%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "light-dark(#cfe5dc, #2f5045) !important",
  },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  ".cm-placeholder-token": {
    backgroundColor: "color-mix(in srgb, var(--override) 14%, transparent)",
    color: "var(--override)",
    borderRadius: "3px",
    padding: "1px 0",
  },
  ".cm-placeholder-unknown": { textDecoration: "underline wavy var(--update)" },
  ".cm-panels": {
    backgroundColor: "var(--sunken)",
    color: "var(--text)",
    borderColor: "var(--line)",
  },
  ".cm-changedLine, &.cm-merge-b .cm-changedLine": { backgroundColor: "var(--added)" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "var(--removed)" },
  ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--text-soft)" },
});

const highlight = HighlightStyle.define([
  { tag: tags.heading, fontWeight: "650" },
  { tag: tags.strong, fontWeight: "650" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: [tags.link, tags.url], color: "var(--link)" },
  { tag: tags.monospace, color: "var(--template)" },
  { tag: tags.quote, color: "var(--text-soft)" },
  { tag: [tags.processingInstruction, tags.meta], color: "var(--text-faint)" },
]);

export const PLACEHOLDERS = [
  "AGENT_NAME",
  "TENANT_NAME",
  "HUMAN_NAME",
  "HUMAN_EMAIL",
  "HUMAN_TITLE",
  "HUMAN_TIMEZONE",
  "HUMAN_PRONOUNS",
];

const knownMark = Decoration.mark({ class: "cm-placeholder-token" });
const unknownMark = Decoration.mark({
  class: "cm-placeholder-token cm-placeholder-unknown",
  attributes: { title: "Unknown placeholder; it is not replaced." },
});
const placeholderMatcher = new MatchDecorator({
  regexp: /\{\{([A-Z][A-Z0-9_]*)\}\}/g,
  decoration: (match) => (PLACEHOLDERS.includes(match[1] ?? "") ? knownMark : unknownMark),
});

/** Highlights placeholders; unknown ones are underlined. */
const placeholders = ViewPlugin.define(
  (view) => ({
    marks: placeholderMatcher.createDeco(view),
    update(update: ViewUpdate) {
      this.marks = placeholderMatcher.updateDeco(update, this.marks);
    },
  }),
  { decorations: (plugin) => plugin.marks },
);

export const editorTheme: Extension = [
  theme,
  syntaxHighlighting(highlight),
  placeholders,
  NONCE ? EditorView.cspNonce.of(NONCE) : [],
];

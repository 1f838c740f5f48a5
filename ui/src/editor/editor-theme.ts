// How CodeMirror looks at the desk, by the same tokens as all else.

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
  "&": { height: "100%", fontSize: "13px", backgroundColor: "var(--surface)", color: "var(--ink)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 16px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--ink-faint)", border: "none" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--accent-soft) 35%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink)" },
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
    color: "var(--ink)",
    borderColor: "var(--line)",
  },
  ".cm-changedLine, &.cm-merge-b .cm-changedLine": { backgroundColor: "var(--added)" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "var(--removed)" },
  ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--ink-soft)" },
});

const highlight = HighlightStyle.define([
  { tag: tags.heading, fontWeight: "650" },
  { tag: tags.strong, fontWeight: "650" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: [tags.link, tags.url], color: "var(--link)" },
  { tag: tags.monospace, color: "var(--template)" },
  { tag: tags.quote, color: "var(--ink-soft)" },
  { tag: [tags.processingInstruction, tags.meta], color: "var(--ink-faint)" },
]);

export const TOKENS = [
  "AGENT_NAME",
  "TENANT_NAME",
  "HUMAN_NAME",
  "HUMAN_EMAIL",
  "HUMAN_TITLE",
  "HUMAN_TIMEZONE",
  "HUMAN_PRONOUNS",
];

const known = Decoration.mark({ class: "cm-placeholder-token" });
const unknown = Decoration.mark({
  class: "cm-placeholder-token cm-placeholder-unknown",
  attributes: { title: "Not a placeholder that Carrel fills in: it stays as it is." },
});
const tokens = new MatchDecorator({
  regexp: /\{\{([A-Z][A-Z0-9_]*)\}\}/g,
  decoration: (match) => (TOKENS.includes(match[1] ?? "") ? known : unknown),
});

/** Marks the placeholders that Carrel fills in, and those that it does not know. */
const placeholders = ViewPlugin.define(
  (view) => ({
    marks: tokens.createDeco(view),
    update(update: ViewUpdate) {
      this.marks = tokens.updateDeco(update, this.marks);
    },
  }),
  { decorations: (plugin) => plugin.marks },
);

export const looks: Extension = [
  theme,
  syntaxHighlighting(highlight),
  placeholders,
  NONCE ? EditorView.cspNonce.of(NONCE) : [],
];

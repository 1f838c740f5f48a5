import { splitHiddenCharacters, type TextSegment } from "./hidden-characters";

export const MAX_CHARS = 20_000;

interface LiteralTextProps {
  text: string;
  label: string;
  /** Whether to show more than MAX_CHARS characters. */
  whole?: boolean;
}

/** Untrusted text, literally: line breaks and invisible characters are visible. */
export function LiteralText({ text, label, whole = false }: LiteralTextProps) {
  const visible = whole ? text : text.slice(0, MAX_CHARS);
  const lines = visible.split("\n");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable
    <pre className="text literal" role="region" aria-label={label} tabIndex={0}>
      {lines.map((line, index) => (
        <Line
          // biome-ignore lint/suspicious/noArrayIndexKey: lines are never reordered
          key={index}
          segments={splitHiddenCharacters(line)}
          hasLineBreak={index < lines.length - 1}
        />
      ))}
      {text.length > visible.length && (
        <span className="mark">
          … {(text.length - MAX_CHARS).toLocaleString("en")} more characters
        </span>
      )}
    </pre>
  );
}

function Line({ segments, hasLineBreak }: { segments: TextSegment[]; hasLineBreak: boolean }) {
  return (
    <>
      {segments.map(({ text, hidden }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: segments are never reordered
        <span key={index} className={hidden ? "mark" : "bidi"}>
          {text}
        </span>
      ))}
      {hasLineBreak && <span className="mark end-of-line">↵{"\n"}</span>}
    </>
  );
}

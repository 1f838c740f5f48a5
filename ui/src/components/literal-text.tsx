import { type Piece, piecesOf } from "./hidden-characters";

const MOST = 20_000;

/** A text of others to the letter: ends of lines and invisible characters can be seen. */
export function InertText({ text, label }: { text: string; label: string }) {
  const shown = text.slice(0, MOST);
  const lines = shown.split("\n");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <pre className="text inert" role="region" aria-label={label} tabIndex={0}>
      {lines.map((line, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines of one text never move
        <Line key={at} pieces={piecesOf(line)} ends={at < lines.length - 1} />
      ))}
      {text.length > MOST && (
        <span className="mark">… {(text.length - MOST).toLocaleString("en")} more characters</span>
      )}
    </pre>
  );
}

function Line({ pieces, ends }: { pieces: Piece[]; ends: boolean }) {
  return (
    <>
      {pieces.map(({ text, hidden }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of one line never move
        <span key={at} className={hidden ? "mark" : "bidi"}>
          {text}
        </span>
      ))}
      {ends && <span className="mark end-of-line">↵{"\n"}</span>}
    </>
  );
}

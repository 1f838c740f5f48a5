/** A unified diff as the server made it, line by line. */
export function UnifiedDiff({ text }: { text: string }) {
  if (!text.trim()) return <p className="faint">Nothing differs.</p>;
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
    <div className="diff" role="region" aria-label="Difference" tabIndex={0}>
      {lines.map((line, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines of one text never move
        <div key={at} className={kind(line)}>
          {line || " "}
        </div>
      ))}
    </div>
  );
}

function kind(line: string): string | undefined {
  if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@")) return "where";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : undefined;
}

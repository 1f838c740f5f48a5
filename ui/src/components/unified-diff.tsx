/** A unified diff from the server. */
export function UnifiedDiff({ text }: { text: string }) {
  if (!text.trim()) return <p className="faint">No changes.</p>;
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable
    <div className="diff" role="region" aria-label="Diff" tabIndex={0}>
      {lines.map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines are never reordered
        <div key={index} className={lineClass(line)}>
          {line || " "}
        </div>
      ))}
    </div>
  );
}

function lineClass(line: string): string | undefined {
  if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@"))
    return "hunk-header";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : undefined;
}

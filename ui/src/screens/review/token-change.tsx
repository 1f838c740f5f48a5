/** Change of a file's size in tokens. */
export function TokenChange({ before, after }: { before: number | null; after: number | null }) {
  if (after === null) return <span className="faint">unknown</span>;
  const previous = before ?? 0;
  const difference = after - previous;
  const sign = difference > 0 ? "+" : difference < 0 ? "−" : "±";
  const className = difference > 0 ? "badge update" : difference < 0 ? "badge good" : "badge";
  return (
    <span className="row wrap token-change">
      <span>
        {previous.toLocaleString("en")} → {after.toLocaleString("en")} tokens
      </span>
      <span className={className}>
        {sign}
        {Math.abs(difference).toLocaleString("en")}
      </span>
    </span>
  );
}

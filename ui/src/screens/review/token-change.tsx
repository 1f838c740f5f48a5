/** How much longer a prompt becomes, in the tokens that a model counts. */
export function TokenEffect({ before, after }: { before: number | null; after: number | null }) {
  if (after === null) return <span className="faint">not known</span>;
  const was = before ?? 0;
  const more = after - was;
  const sign = more > 0 ? "+" : more < 0 ? "−" : "±";
  const look = more > 0 ? "badge update" : more < 0 ? "badge good" : "badge";
  return (
    <span className="row wrap token-effect">
      <span>
        {was.toLocaleString("en")} → {after.toLocaleString("en")} tokens
      </span>
      <span className={look}>
        {sign}
        {Math.abs(more).toLocaleString("en")}
      </span>
    </span>
  );
}

// Which agents refer to a record, on its page and before it is deleted.

import { Link } from "react-router";
import type { Use } from "../api/agent-records";
import { plain } from "./escape-text";

export function UsedBy({ uses, teach }: { uses: Use[] | undefined; teach: string }) {
  return (
    <section className="card" aria-labelledby="used-by">
      <header>
        <h2 id="used-by">Used by</h2>
        {uses && <span className="badge">{uses.length}</span>}
      </header>
      <div className="inside">
        {uses?.length === 0 && <p className="soft">{teach}</p>}
        <ul className="lines scrolled">
          {uses?.slice(0, 200).map(({ agent, how }) => (
            <li key={agent.id + how}>
              <Link className="bidi" to={`/agents/${agent.id}/settings`}>
                {plain(agent.name, 60)}
              </Link>{" "}
              <span className="faint">{plain(how, 120)}</span>
            </li>
          ))}
          {uses && uses.length > 200 && <li className="faint">and {uses.length - 200} more</li>}
        </ul>
      </div>
    </section>
  );
}

/** Who would miss it: the end of the sentence that asks whether to delete. */
export function Missed({ uses, what }: { uses: Use[]; what: string }) {
  const names = [...new Set(uses.map(({ agent }) => plain(agent.name, 40)))];
  if (!names.length) return <p className="soft">No agent refers to {what}.</p>;
  return (
    <div className="notice update">
      <div className="grow bidi">
        <strong>
          {names.length === 1 ? "1 agent refers" : `${names.length} agents refer`} to {what}:
        </strong>{" "}
        {names.slice(0, 12).join(", ")}
        {names.length > 12 && ` and ${names.length - 12} more`}. Their tools and prompts will say
        that it is gone.
      </div>
    </div>
  );
}

// Agents that use a record, on its page and in its delete dialog.

import { Link } from "react-router";
import type { AgentUse } from "../api/agent-records";
import { escapeText } from "./escape-text";

export function UsedBy({ uses, emptyText }: { uses: AgentUse[] | undefined; emptyText: string }) {
  return (
    <section className="card" aria-labelledby="used-by">
      <header>
        <h2 id="used-by">Used by</h2>
        {uses && <span className="badge">{uses.length}</span>}
      </header>
      <div className="card-body">
        {uses?.length === 0 && <p className="soft">{emptyText}</p>}
        <ul className="lines scrollable">
          {uses?.slice(0, 200).map(({ agent, detail }) => (
            <li key={agent.id + detail}>
              <Link className="bidi" to={`/agents/${agent.id}/settings`}>
                {escapeText(agent.name, 60)}
              </Link>{" "}
              <span className="faint">{escapeText(detail, 120)}</span>
            </li>
          ))}
          {uses && uses.length > 200 && <li className="faint">and {uses.length - 200} more</li>}
        </ul>
      </div>
    </section>
  );
}

/** Warns which agents use a record that is about to be deleted. */
export function DeleteWarning({ uses }: { uses: AgentUse[] }) {
  const names = [...new Set(uses.map(({ agent }) => escapeText(agent.name, 40)))];
  if (!names.length) return <p className="soft">No agent uses it.</p>;
  return (
    <div className="notice update">
      <div className="grow bidi">
        <strong>Used by {names.length === 1 ? "1 agent" : `${names.length} agents`}:</strong>{" "}
        {names.slice(0, 12).join(", ")}
        {names.length > 12 && ` and ${names.length - 12} more`}. Their tools will report it as
        missing.
      </div>
    </div>
  );
}

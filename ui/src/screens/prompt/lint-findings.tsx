// What is wrong with an agent's prompt, file by file.

import { useQuery } from "@tanstack/react-query";
import { AlertTriangle, CheckCircle2 } from "lucide-react";
import { Link } from "react-router";
import { addressOf } from "../../api/files";
import { type Flaw, flawsQuery } from "../../api/prompt";
import { plain } from "../../components/escape-text";
import { Shown } from "../../components/query-states";

export function Flaws({ agentId }: { agentId: string }) {
  const flaws = useQuery(flawsQuery(agentId));
  return (
    <Shown query={flaws} what="Looking for flaws">
      {(found) =>
        found.length === 0 ? (
          <p className="notice good">
            <CheckCircle2 size={16} aria-hidden />
            Nothing is wrong with this prompt: nothing is cut, dead, secret or unstable.
          </p>
        ) : (
          <div className="notice update">
            <AlertTriangle size={16} aria-hidden />
            <ul className="grow stack tight" aria-label="Flaws of the prompt">
              {found.map((flaw) => (
                <FlawLine
                  key={`${flaw.fault} ${flaw.path} ${flaw.text}`}
                  flaw={flaw}
                  agentId={agentId}
                />
              ))}
            </ul>
          </div>
        )
      }
    </Shown>
  );
}

function FlawLine({ flaw, agentId }: { flaw: Flaw; agentId: string }) {
  return (
    <li>
      <span className="badge update">{flaw.fault}</span>{" "}
      {flaw.path && (
        <Link className="bidi" to={addressOf({ kind: "agent", id: agentId }, flaw.path)}>
          {plain(flaw.path, 120)}
        </Link>
      )}{" "}
      <span className="soft bidi">{plain(flaw.text, 400)}</span>
    </li>
  );
}

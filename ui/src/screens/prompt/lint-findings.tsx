// Lint findings of an agent's prompt.

import { useQuery } from "@tanstack/react-query";
import { AlertTriangle, CheckCircle2 } from "lucide-react";
import { Link } from "react-router";
import { fileUrl } from "../../api/files";
import { type Flaw, flawsQuery } from "../../api/prompt";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";

export function LintFindings({ agentId }: { agentId: string }) {
  const lint = useQuery(flawsQuery(agentId));
  return (
    <QueryResult query={lint} label="Checking the prompt">
      {(findings) =>
        findings.length === 0 ? (
          <p className="notice good">
            <CheckCircle2 size={16} aria-hidden />
            No problems found in this prompt.
          </p>
        ) : (
          <div className="notice update">
            <AlertTriangle size={16} aria-hidden />
            <ul className="grow stack tight" aria-label="Prompt problems">
              {findings.map((finding) => (
                <LintFinding
                  key={`${finding.fault} ${finding.path} ${finding.text}`}
                  finding={finding}
                  agentId={agentId}
                />
              ))}
            </ul>
          </div>
        )
      }
    </QueryResult>
  );
}

function LintFinding({ finding, agentId }: { finding: Flaw; agentId: string }) {
  return (
    <li>
      <span className="badge update">{finding.fault}</span>{" "}
      {finding.path && (
        <Link className="bidi" to={fileUrl({ kind: "agent", id: agentId }, finding.path)}>
          {escapeText(finding.path, 120)}
        </Link>
      )}{" "}
      <span className="soft bidi">{escapeText(finding.text, 400)}</span>
    </li>
  );
}

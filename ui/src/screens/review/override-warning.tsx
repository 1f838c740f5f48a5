import { useQuery } from "@tanstack/react-query";
import { AlertTriangle } from "lucide-react";
import { fileQuery } from "../../api/files";
import { QueryResult } from "../../components/query-states";

/** Warns that accepting removes the agent's override, and shows its text. */
export function OverrideWarning({ agentId, path }: { agentId: string; path: string }) {
  const override = useQuery(fileQuery({ kind: "agent", id: agentId }, path));
  return (
    <div className="notice update">
      <AlertTriangle size={16} aria-hidden />
      <div className="grow stack tight">
        <div>
          <strong>This agent overrides the file.</strong> Accepting removes the override. Its text
          stays in the history.
        </div>
        <details>
          <summary>Show override</summary>
          <QueryResult query={override}>
            {(file) => (
              <div
                className="override-text"
                role="region"
                aria-label="Override"
                // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable
                tabIndex={0}
              >
                <pre className="text">{file.content || "(empty file)"}</pre>
              </div>
            )}
          </QueryResult>
        </details>
      </div>
    </div>
  );
}

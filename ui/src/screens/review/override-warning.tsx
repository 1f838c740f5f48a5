import { useQuery } from "@tanstack/react-query";
import { AlertTriangle } from "lucide-react";
import { fileQuery } from "../../api/files";
import { QueryResult } from "../../components/query-states";

/** Says that accepting drops the agent's own text, and lets it be read first. */
export function OverrideWarning({ agentId, path }: { agentId: string; path: string }) {
  const override = useQuery(fileQuery({ kind: "agent", id: agentId }, path));
  return (
    <div className="notice update">
      <AlertTriangle size={16} aria-hidden />
      <div className="grow stack tight">
        <div>
          <strong>This agent has a text of its own here.</strong> Accepting drops it: the agent then
          follows what is on the right. Its history keeps the text.
        </div>
        <details>
          <summary>Show the agent's own text</summary>
          <QueryResult query={override}>
            {(file) => (
              <div
                className="own-text"
                role="region"
                aria-label="The agent's own text"
                // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
                tabIndex={0}
              >
                <pre className="text">{file.content || "(an empty file)"}</pre>
              </div>
            )}
          </QueryResult>
        </details>
      </div>
    </div>
  );
}

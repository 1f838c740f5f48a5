import { AlertTriangle } from "lucide-react";
import type { Pin } from "../../api/pins";

/** Says which lines of the agent's override are lost if the update is accepted. */
export function OverrideWarning({ pin }: { pin: Pin }) {
  const lost = lostLines(pin.servedContent ?? "", pin.latestContent ?? "");
  return (
    <div className="notice update">
      <AlertTriangle size={16} aria-hidden />
      <div className="grow stack tight">
        <div>
          <strong>This agent overrides the file.</strong> Accepting removes the override
          {lost.length > 0 &&
            ` and drops ${lost.length === 1 ? "1 line" : `${lost.length} lines`} of it`}
          . Its text stays in the history; a merge keeps it.
        </div>
        {lost.length > 0 && (
          <details>
            <summary>Show lost lines</summary>
            <div
              className="override-text"
              role="region"
              aria-label="Lost lines"
              // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable
              tabIndex={0}
            >
              <pre className="text">{lost.join("\n")}</pre>
            </div>
          </details>
        )}
      </div>
    </div>
  );
}

/** Lines of the override that the offered text does not have. */
function lostLines(override: string, offered: string): string[] {
  const lines = new Set(offered.split("\n"));
  return override.split("\n").filter((line) => line.trim() !== "" && !lines.has(line));
}

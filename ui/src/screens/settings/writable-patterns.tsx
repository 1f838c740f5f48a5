import { Plus, X } from "lucide-react";
import { Button } from "../../components/button";

interface WritablePatternsProps {
  patterns: string[];
  onChange: (patterns: string[]) => void;
}

/** Paths that agents may write with their own keys. */
export function WritablePatterns({ patterns, onChange }: WritablePatternsProps) {
  return (
    <section className="card" aria-labelledby="writable">
      <header>
        <h3 id="writable">Agent-writable files</h3>
      </header>
      <div className="card-body stack">
        <p className="soft">Agents may write only these paths with their own keys.</p>
        <ul className="rules" aria-label="Agent-writable patterns">
          {patterns.map((pattern, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a pattern is identified by its position
            <li key={index} className="row">
              <input
                className="input mono grow"
                aria-label={`Agent-writable pattern ${index + 1}`}
                required
                maxLength={256}
                value={pattern}
                onChange={(event) =>
                  onChange(
                    patterns.map((other, position) =>
                      position === index ? event.target.value : other,
                    ),
                  )
                }
              />
              <Button
                kind="plain"
                small
                icon={X}
                aria-label={`Remove pattern ${index + 1}`}
                onClick={() => onChange(patterns.filter((_, position) => position !== index))}
              />
            </li>
          ))}
        </ul>
        <div>
          <Button icon={Plus} onClick={() => onChange([...patterns, ""])}>
            Add pattern
          </Button>
        </div>
      </div>
    </section>
  );
}

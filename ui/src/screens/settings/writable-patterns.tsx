import { Plus, X } from "lucide-react";
import { Button } from "../../components/button";

interface WritablePatternsProps {
  patterns: string[];
  onChange: (patterns: string[]) => void;
}

/** The paths that an agent may write with a key of its own. */
export function WritablePatterns({ patterns, onChange }: WritablePatternsProps) {
  return (
    <section className="card" aria-labelledby="writable">
      <header>
        <h3 id="writable">What agents write themselves</h3>
      </header>
      <div className="inside stack">
        <p className="soft">With keys of their own they may write these paths, and no others.</p>
        <ul className="rules" aria-label="Patterns that agents write">
          {patterns.map((pattern, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a pattern is known by its place
            <li key={index} className="row">
              <input
                className="input mono grow"
                aria-label={`Pattern ${index + 1} that agents write`}
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
            Add a pattern
          </Button>
        </div>
      </div>
    </section>
  );
}

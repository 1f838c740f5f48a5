import { Plus, X } from "lucide-react";
import { Button } from "../../components/button";

interface PatternsProps {
  patterns: string[];
  onChange: (patterns: string[]) => void;
}

/** The paths that an agent may write with a key of its own. */
export function Patterns({ patterns, onChange }: PatternsProps) {
  return (
    <section className="card" aria-labelledby="writable">
      <header>
        <h3 id="writable">What agents write themselves</h3>
      </header>
      <div className="inside stack">
        <p className="soft">With keys of their own they may write these paths, and no others.</p>
        <ul className="rules" aria-label="Patterns that agents write">
          {patterns.map((pattern, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a pattern is known by its place
            <li key={at} className="row">
              <input
                className="input mono grow"
                aria-label={`Pattern ${at + 1} that agents write`}
                required
                maxLength={256}
                value={pattern}
                onChange={(event) =>
                  onChange(patterns.map((each, one) => (one === at ? event.target.value : each)))
                }
              />
              <Button
                kind="plain"
                small
                icon={X}
                aria-label={`Remove pattern ${at + 1}`}
                onClick={() => onChange(patterns.filter((_, one) => one !== at))}
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

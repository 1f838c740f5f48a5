// Redaction, retention and limits.

import type { Limits, Policy } from "../../api/policy";
import { Field } from "../../components/field";
import type { Fill } from "./policy";

const SHAPES: Record<Policy["redaction"], string> = {
  redact: "are replaced by what they look like",
  warn: "are left, and whoever writes is warned",
  off: "are left",
};

interface PolicyPartProps {
  policy: Policy;
  fill: Fill;
}

export function Redaction({ policy, fill }: PolicyPartProps) {
  return (
    <section className="card" aria-labelledby="redaction">
      <header>
        <h3 id="redaction">Redaction and retention</h3>
      </header>
      <div className="inside columns">
        <Field label="Texts that look like keys or tokens" hint="Kept secrets are always redacted.">
          <select
            className="input"
            value={policy.redaction}
            onChange={(event) => fill({ redaction: event.target.value as Policy["redaction"] })}
          >
            {Object.entries(SHAPES).map(([mode, says]) => (
              <option key={mode} value={mode}>
                {says} ({mode})
              </option>
            ))}
          </select>
        </Field>
        <Field label="Days that runs are kept" hint="Empty keeps every run, and all that it saw.">
          <input
            className="input"
            type="number"
            min={1}
            max={36500}
            value={policy.runRetentionDays ?? ""}
            onChange={(event) =>
              fill({ runRetentionDays: event.target.value ? Number(event.target.value) : null })
            }
          />
        </Field>
      </div>
    </section>
  );
}

export function Bounds({ policy, fill }: PolicyPartProps) {
  return (
    <section className="card" aria-labelledby="limits">
      <header>
        <h3 id="limits">Limits</h3>
      </header>
      <div className="inside stack">
        <LimitFields
          legend="Files of agents, templates and the defaults"
          limits={policy.limits}
          onChange={(limits) => fill({ limits })}
        />
        <LimitFields
          legend="Shared workspaces"
          limits={policy.sharedLimits as Limits}
          onChange={(sharedLimits) => fill({ sharedLimits })}
        />
      </div>
    </section>
  );
}

const NUMBERS: [keyof Limits, string][] = [
  ["maxFileBytes", "Bytes of a file"],
  ["maxFiles", "Files"],
  ["maxVersions", "Versions of a file"],
  ["maxBytes", "Bytes in all"],
];

interface LimitFieldsProps {
  legend: string;
  limits: Policy["limits"];
  onChange: (limits: Policy["limits"]) => void;
}

function LimitFields({ legend, limits, onChange }: LimitFieldsProps) {
  return (
    <fieldset className="choices">
      <legend className="label">{legend}</legend>
      <div className="columns four">
        {NUMBERS.map(([name, label]) => (
          <Field key={name} label={label}>
            <input
              className="input"
              type="number"
              min={1}
              required={name !== "maxBytes"}
              placeholder="no limit"
              value={limits[name] ?? ""}
              onChange={(event) =>
                onChange({
                  ...limits,
                  [name]: event.target.value ? Number(event.target.value) : null,
                })
              }
            />
          </Field>
        ))}
      </div>
    </fieldset>
  );
}

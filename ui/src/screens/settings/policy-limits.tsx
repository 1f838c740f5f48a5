// Redaction, retention and limits.

import type { Limits, Policy } from "../../api/policy";
import { Field } from "../../components/field";
import type { UpdatePolicy } from "./policy";

const REDACTION_MODES: Record<Policy["redaction"], string> = {
  redact: "Redact",
  warn: "Keep and warn",
  off: "Keep",
};

interface PolicySectionProps {
  policy: Policy;
  update: UpdatePolicy;
}

export function RedactionSection({ policy, update }: PolicySectionProps) {
  return (
    <section className="card" aria-labelledby="redaction">
      <header>
        <h3 id="redaction">Redaction and retention</h3>
      </header>
      <div className="card-body columns">
        <Field
          label="Texts that look like keys or tokens"
          hint="Stored secrets are always redacted."
        >
          <select
            className="input"
            value={policy.redaction}
            onChange={(event) => update({ redaction: event.target.value as Policy["redaction"] })}
          >
            {Object.entries(REDACTION_MODES).map(([mode, description]) => (
              <option key={mode} value={mode}>
                {description}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Run retention (days)" hint="Empty: keep all runs.">
          <input
            className="input"
            type="number"
            min={1}
            max={36500}
            value={policy.runRetentionDays ?? ""}
            onChange={(event) =>
              update({ runRetentionDays: event.target.value ? Number(event.target.value) : null })
            }
          />
        </Field>
      </div>
    </section>
  );
}

export function LimitsSection({ policy, update }: PolicySectionProps) {
  return (
    <section className="card" aria-labelledby="limits">
      <header>
        <h3 id="limits">Limits</h3>
      </header>
      <div className="card-body stack">
        <LimitFields
          legend="Agents, templates and defaults"
          limits={policy.limits}
          onChange={(limits) => update({ limits })}
        />
        <LimitFields
          legend="Shared workspaces"
          limits={policy.sharedLimits as Limits}
          onChange={(sharedLimits) => update({ sharedLimits })}
        />
      </div>
    </section>
  );
}

const LIMIT_FIELDS: [keyof Limits, string][] = [
  ["maxFileBytes", "Bytes per file"],
  ["maxFiles", "Files"],
  ["maxVersions", "Versions per file"],
  ["maxBytes", "Total bytes"],
];

interface LimitFieldsProps {
  legend: string;
  limits: Policy["limits"];
  onChange: (limits: Policy["limits"]) => void;
}

function LimitFields({ legend, limits, onChange }: LimitFieldsProps) {
  return (
    <fieldset className="checkbox-group">
      <legend className="label">{legend}</legend>
      <div className="columns four">
        {LIMIT_FIELDS.map(([name, label]) => (
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

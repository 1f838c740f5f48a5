import { Field } from "../../components/field";
import type { SandboxDraft } from "./sandbox-draft";
import type { Fill } from "./sandbox-form";

const LIMITS = [
  ["timeout", "Seconds of a command", "30"],
  ["memoryLimit", "Megabytes of memory", "1024"],
  ["outputLimitBytes", "Bytes of output", "65536"],
] as const;

const KEPT = [
  ["idleTimeoutSeconds", "Seconds it may be idle", "900"],
  ["maxLifetimeSeconds", "Seconds it may live", "no bound"],
] as const;

type Numbers = (typeof LIMITS | typeof KEPT)[number][0];

/** What a command is bounded in, and whether anything is kept between two of them. */
export function SandboxLimits({ draft, fill }: { draft: SandboxDraft; fill: Fill }) {
  const number = ([name, label, usual]: readonly [Numbers, string, string]) => (
    <Field key={name} label={label}>
      <input
        className="input"
        type="number"
        min={1}
        placeholder={usual}
        value={draft[name]}
        onChange={(event) => fill({ [name]: event.target.value })}
      />
    </Field>
  );
  return (
    <>
      <div className="columns">{LIMITS.map(number)}</div>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.persistent}
          onChange={(event) => fill({ persistent: event.target.checked })}
        />
        <span>
          Keep it between commands{" "}
          <span className="faint">with its home and its background jobs</span>
        </span>
      </label>
      {draft.persistent && <div className="columns">{KEPT.map(number)}</div>}
    </>
  );
}

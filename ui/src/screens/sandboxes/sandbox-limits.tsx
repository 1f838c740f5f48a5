import { Field } from "../../components/field";
import type { SandboxDraft } from "./sandbox-draft";
import type { UpdateDraft } from "./sandbox-form";

const COMMAND_LIMITS = [
  ["timeout", "Seconds of a command", "30"],
  ["memoryLimit", "Megabytes of memory", "1024"],
  ["outputLimitBytes", "Bytes of output", "65536"],
] as const;

const LIFETIME_LIMITS = [
  ["idleTimeoutSeconds", "Seconds it may be idle", "900"],
  ["maxLifetimeSeconds", "Seconds it may live", "no bound"],
] as const;

type LimitName = (typeof COMMAND_LIMITS | typeof LIFETIME_LIMITS)[number][0];

/** What a command is bounded in, and whether anything is kept between two of them. */
export function SandboxLimits({ draft, update }: { draft: SandboxDraft; update: UpdateDraft }) {
  const limitField = ([name, label, placeholder]: readonly [LimitName, string, string]) => (
    <Field key={name} label={label}>
      <input
        className="input"
        type="number"
        min={1}
        placeholder={placeholder}
        value={draft[name]}
        onChange={(event) => update({ [name]: event.target.value })}
      />
    </Field>
  );
  return (
    <>
      <div className="columns">{COMMAND_LIMITS.map(limitField)}</div>
      <label className="check">
        <input
          type="checkbox"
          checked={draft.persistent}
          onChange={(event) => update({ persistent: event.target.checked })}
        />
        <span>
          Keep it between commands{" "}
          <span className="faint">with its home and its background jobs</span>
        </span>
      </label>
      {draft.persistent && <div className="columns">{LIFETIME_LIMITS.map(limitField)}</div>}
    </>
  );
}

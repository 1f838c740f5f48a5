import { Field } from "../../components/field";
import type { SandboxDraft } from "./sandbox-draft";
import type { UpdateDraft } from "./sandbox-form";

const COMMAND_LIMITS = [
  ["timeout", "Timeout (seconds)", "30"],
  ["memoryLimit", "Memory (MB)", "1024"],
  ["outputLimitBytes", "Output (bytes)", "65536"],
] as const;

const LIFETIME_LIMITS = [
  ["idleTimeoutSeconds", "Idle timeout (seconds)", "900"],
  ["maxLifetimeSeconds", "Max. lifetime (seconds)", "no limit"],
] as const;

type LimitName = (typeof COMMAND_LIMITS | typeof LIFETIME_LIMITS)[number][0];

/** Limits of a command, and persistence between commands. */
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
          Persistent{" "}
          <span className="faint">keeps home directory and background jobs between commands</span>
        </span>
      </label>
      {draft.persistent && <div className="columns">{LIFETIME_LIMITS.map(limitField)}</div>}
    </>
  );
}

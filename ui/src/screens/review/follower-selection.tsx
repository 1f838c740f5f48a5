import { useMemo, useState } from "react";
import { Link } from "react-router";
import { fileUrl } from "../../api/files";
import type { FollowerPart } from "../../api/pins";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { AcceptConfirmation } from "./accept-confirmation";
import type { FollowerGroup, PendingFollower } from "./followers";

const MAX_LISTED = 200;
const SHARES = ["5", "10", "25", "50", "100"];

interface FollowerSelectionProps {
  groups: FollowerGroup[];
  /** Why accepting is disabled; null if enabled. */
  disabledReason: string | null;
  busy: boolean;
  onAccept: (selected: PendingFollower[], part: FollowerPart | null) => void;
}

/** Agents with a pending update, all selected initially. */
export function FollowerSelection({
  groups,
  disabledReason,
  busy,
  onAccept,
}: FollowerSelectionProps) {
  const [isConfirming, setConfirming] = useState(false);
  const [share, setShare] = useState("100");
  const [excluded, setExcluded] = useState<ReadonlySet<string>>(new Set());
  const allAgents = useMemo(() => groups.flatMap(({ agents }) => agents), [groups]);
  const selected = allAgents.filter(({ id }) => !excluded.has(id));
  const overriddenCount = selected.filter(({ overridden }) => overridden).length;
  const isPart = share !== "100" && selected.length === allAgents.length;
  const toggle = (id: string) => {
    const next = new Set(excluded);
    if (!next.delete(id)) next.add(id);
    setExcluded(next);
  };
  return (
    <section className="card followers">
      <header>
        <h2 className="grow">{agentCount(allAgents.length)} to update</h2>
        {disabledReason && <span className="faint">{disabledReason}</span>}
        <Button
          kind="primary"
          busy={busy}
          disabled={disabledReason !== null || selected.length === 0}
          onClick={() => setConfirming(true)}
        >
          {selected.length === allAgents.length && selected.length > 1
            ? `Accept for all ${agentCount(allAgents.length)}`
            : `Accept for ${agentCount(selected.length)}`}
        </Button>
      </header>
      {selected.length === allAgents.length && allAgents.length > 1 && (
        <label className="card-body row">
          Accept first for
          <select
            className="input short"
            value={share}
            disabled={busy}
            onChange={({ target }) => setShare(target.value)}
          >
            {SHARES.map((percent) => (
              <option key={percent} value={percent}>
                {percent === "100" ? "all agents" : `${percent} % of the agents`}
              </option>
            ))}
          </select>
        </label>
      )}
      {isConfirming && (
        <AcceptConfirmation
          selected={selected}
          part={isPart ? `${share} %` : null}
          onClose={() => setConfirming(false)}
          onConfirm={() => {
            setConfirming(false);
            onAccept(selected, isPart ? { share: Number(share) } : null);
          }}
        />
      )}
      {overriddenCount > 0 && (
        <p className="card-body soft">
          {overriddenCount === 1 ? "1 agent overrides" : `${overriddenCount} agents override`} this
          file. Accepting removes the override.
        </p>
      )}
      <label className="check follower-all">
        <input
          type="checkbox"
          checked={selected.length === allAgents.length}
          disabled={busy}
          onChange={() =>
            setExcluded(excluded.size > 0 ? new Set() : new Set(allAgents.map(({ id }) => id)))
          }
        />
        All
      </label>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable */}
      <div className="follower-scroll" role="region" aria-label="Agents to accept for" tabIndex={0}>
        <ul className="follower-list">
          {allAgents.slice(0, MAX_LISTED).map((agent) => (
            <FollowerRow
              key={agent.id}
              agent={agent}
              isSelected={!excluded.has(agent.id)}
              busy={busy}
              toggle={toggle}
            />
          ))}
        </ul>
      </div>
      {allAgents.length > MAX_LISTED && (
        <p className="card-body faint">
          {agentCount(allAgents.length - MAX_LISTED)} more not shown.
        </p>
      )}
    </section>
  );
}

const agentCount = (n: number) => (n === 1 ? "1 agent" : `${n.toLocaleString("en")} agents`);

interface FollowerRowProps {
  agent: PendingFollower;
  isSelected: boolean;
  busy: boolean;
  toggle: (id: string) => void;
}

function FollowerRow({ agent, isSelected, busy, toggle }: FollowerRowProps) {
  const name = escapeText(agent.name, 80);
  return (
    <li className="row">
      <label className="check grow">
        <input
          type="checkbox"
          checked={isSelected}
          disabled={busy}
          onChange={() => toggle(agent.id)}
        />
        <span className="truncate bidi">{name}</span>
        <span className="faint mono truncate">{agent.slug}</span>
      </label>
      {agent.overridden && <span className="badge override">overridden</span>}
      <Link to={fileUrl({ kind: "agent", id: agent.id })} aria-label={`Open ${name}`}>
        Open
      </Link>
    </li>
  );
}

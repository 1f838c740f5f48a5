import { useMemo, useState } from "react";
import { Link } from "react-router";
import { fileUrl } from "../../api/files";
import type { FollowerPart } from "../../api/pins";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { AcceptConfirmation } from "./accept-confirmation";
import { DeclineConfirmation } from "./decline-confirmation";
import type { FollowerGroup, PendingFollower } from "./followers";
import { ALL_AGENTS, describePart, PartFields, partOf } from "./part-fields";

const MAX_LISTED = 200;

interface FollowerSelectionProps {
  groups: FollowerGroup[];
  /** Why accepting is disabled; null if enabled. */
  disabledReason: string | null;
  busy: boolean;
  /** Whether the update removes the file. */
  isRemoval: boolean;
  onAccept: (selected: PendingFollower[], part: FollowerPart | null) => void;
  onDecline: (reason: string) => void;
}

/** Agents with a pending update, all selected initially. */
export function FollowerSelection({
  groups,
  disabledReason,
  busy,
  isRemoval,
  onAccept,
  onDecline,
}: FollowerSelectionProps) {
  const [confirming, setConfirming] = useState<"accept" | "decline" | null>(null);
  const [choice, setChoice] = useState(ALL_AGENTS);
  const [excluded, setExcluded] = useState<ReadonlySet<string>>(new Set());
  const allAgents = useMemo(() => groups.flatMap(({ agents }) => agents), [groups]);
  const selected = allAgents.filter(({ id }) => !excluded.has(id));
  const overriddenCount = selected.filter(({ overridden }) => overridden).length;
  const isAll = selected.length === allAgents.length;
  const part = isAll ? partOf(choice) : null;
  const isComplete = !isAll || part !== null || choice.kind === "all";
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
          busy={busy}
          disabled={disabledReason !== null}
          onClick={() => setConfirming("decline")}
        >
          {allAgents.length > 1 ? "Decline for all" : "Decline"}
        </Button>
        <Button
          kind="primary"
          busy={busy}
          disabled={disabledReason !== null || selected.length === 0 || !isComplete}
          onClick={() => setConfirming("accept")}
        >
          {acceptLabel(isRemoval, part !== null, isAll, selected.length)}
        </Button>
      </header>
      {isAll && allAgents.length > 1 && (
        <PartFields choice={choice} onChange={setChoice} disabled={busy} />
      )}
      {confirming === "accept" && (
        <AcceptConfirmation
          selected={selected}
          part={part && describePart(part)}
          isRemoval={isRemoval}
          onClose={() => setConfirming(null)}
          onConfirm={() => {
            setConfirming(null);
            onAccept(selected, part);
          }}
        />
      )}
      {confirming === "decline" && (
        <DeclineConfirmation
          count={allAgents.length}
          onClose={() => setConfirming(null)}
          onConfirm={(reason) => {
            setConfirming(null);
            onDecline(reason);
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
          checked={isAll}
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

function acceptLabel(isRemoval: boolean, isPart: boolean, isAll: boolean, count: number): string {
  const verb = isRemoval ? "Accept removal" : "Accept";
  if (isPart) return `${verb} for this part`;
  return isAll && count > 1
    ? `${verb} for all ${agentCount(count)}`
    : `${verb} for ${agentCount(count)}`;
}

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

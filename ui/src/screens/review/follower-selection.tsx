import { useMemo, useState } from "react";
import { Link } from "react-router";
import { addressOf } from "../../api/files";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import type { Group, Waiting } from "./followers";

const MOST = 200;

interface FollowerChoiceProps {
  groups: Group[];
  /** Why nothing can be accepted now. */
  locked: string | null;
  busy: boolean;
  onAccept: (chosen: Waiting[]) => void;
}

/** Those who wait, all of them chosen until somebody takes one out. */
export function FollowerChoice({ groups, locked, busy, onAccept }: FollowerChoiceProps) {
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const all = useMemo(() => groups.flatMap(({ agents }) => agents), [groups]);
  const chosen = all.filter(({ id }) => !left.has(id));
  const drops = chosen.filter(({ overridden }) => overridden).length;
  const turn = (id: string) => {
    const next = new Set(left);
    if (!next.delete(id)) next.add(id);
    setLeft(next);
  };
  return (
    <section className="card followers">
      <header>
        <h2 className="grow">{many(all.length)} wait</h2>
        {locked && <span className="faint">{locked}</span>}
        <Button
          kind="primary"
          busy={busy}
          disabled={locked !== null || chosen.length === 0}
          onClick={() => onAccept(chosen)}
        >
          {chosen.length === all.length
            ? `Accept for all ${many(all.length)}`
            : `Accept for ${many(chosen.length)}`}
        </Button>
      </header>
      {drops > 0 && (
        <p className="inside soft">
          {drops === 1 ? "One of them has a text" : `${drops} of them have a text`} of their own,
          which accepting drops.
        </p>
      )}
      <label className="check follower-all">
        <input
          type="checkbox"
          checked={chosen.length === all.length}
          disabled={busy}
          onChange={() => setLeft(left.size > 0 ? new Set() : new Set(all.map(({ id }) => id)))}
        />
        All
      </label>
      <ul className="follower-list">
        {all.slice(0, MOST).map((agent) => (
          <Choice key={agent.id} agent={agent} on={!left.has(agent.id)} busy={busy} turn={turn} />
        ))}
      </ul>
      {all.length > MOST && (
        <p className="inside faint">and {many(all.length - MOST)} more, chosen as "All" says.</p>
      )}
    </section>
  );
}

const many = (n: number) => (n === 1 ? "1 agent" : `${n.toLocaleString("en")} agents`);

interface ChoiceProps {
  agent: Waiting;
  on: boolean;
  busy: boolean;
  turn: (id: string) => void;
}

function Choice({ agent, on, busy, turn }: ChoiceProps) {
  const name = plain(agent.name, 80);
  return (
    <li className="row">
      <label className="check grow">
        <input type="checkbox" checked={on} disabled={busy} onChange={() => turn(agent.id)} />
        <span className="cut bidi">{name}</span>
        <span className="faint mono cut">{agent.slug}</span>
      </label>
      {agent.overridden && <span className="badge override">overridden</span>}
      <Link to={addressOf({ kind: "agent", id: agent.id })} aria-label={`Open ${name}`}>
        Open
      </Link>
    </li>
  );
}

import { useMemo } from "react";
import { Link } from "react-router";
import { addressOf } from "../../api/files";
import type { InboxShown } from "../../api/inbox";
import { Button, ButtonLink } from "../../components/button";
import { plain } from "../../components/escape-text";

type Pin = InboxShown["pins"][number];
type Chosen = { agentId: string; path: string };

const FEW = 6;

interface PinsWaitingProps {
  found: InboxShown;
  onReview: (chosen: Chosen) => void;
}

/** Updates to be reviewed, those of one template and file together. */
export function PinsWaiting({ found, onReview }: PinsWaitingProps) {
  const groups = useMemo(() => grouped(found.pins), [found.pins]);
  const { counts, pins } = found;
  return (
    <>
      {groups.map((group) => (
        <Group key={keyOf(group[0] as Pin)} pins={group} onReview={onReview} />
      ))}
      {counts.pins > pins.length && (
        <p className="faint">
          These are {pins.length.toLocaleString("en")} of {counts.pins.toLocaleString("en")} updates
          that wait.
        </p>
      )}
    </>
  );
}

const keyOf = ({ templateId, path }: Pin) => `${templateId ?? ""} ${path}`;

function grouped(pins: Pin[]): Pin[][] {
  const groups = new Map<string, Pin[]>();
  for (const pin of pins) groups.set(keyOf(pin), [...(groups.get(keyOf(pin)) ?? []), pin]);
  return [...groups.values()].sort((a, b) => b.length - a.length);
}

function Group({ pins, onReview }: { pins: Pin[]; onReview: PinsWaitingProps["onReview"] }) {
  const { path, templateId, templateName } = pins[0] as Pin;
  const more = pins.length - FEW;
  const rest = `/agent-templates/${encodeURIComponent(templateId ?? "")}/review?file=${encodeURIComponent(path)}`;
  return (
    <section className="card inbox-group">
      <header>
        <h2 className="grow cut">
          {plain(path, 80)}{" "}
          <span className="soft bidi">{plain(templateName ?? "from the defaults", 60)}</span>
        </h2>
        <span className="badge update">
          {pins.length === 1 ? "1 agent waits" : `${pins.length} agents wait`}
        </span>
        {templateId && (
          <ButtonLink small kind="primary" to={rest}>
            Review for all
          </ButtonLink>
        )}
      </header>
      <ul className="inbox-list">
        {pins.slice(0, templateId ? FEW : pins.length).map((pin) => (
          <Waiting key={pin.agentId} pin={pin} onReview={onReview} />
        ))}
      </ul>
      {templateId && more > 0 && (
        <p className="inside">
          <Link to={rest}>and {more.toLocaleString("en")} more</Link>
        </p>
      )}
    </section>
  );
}

function Waiting({ pin, onReview }: { pin: Pin; onReview: PinsWaitingProps["onReview"] }) {
  const name = plain(pin.agentName, 80);
  return (
    <li className="row">
      <Link className="grow cut bidi" to={addressOf({ kind: "agent", id: pin.agentId }, pin.path)}>
        {name}
      </Link>
      {pin.mine && <span className="badge">mine</span>}
      {pin.newlyOffered && <span className="badge accent">new</span>}
      <Button
        small
        aria-label={`Review ${plain(pin.path, 80)} for ${name}`}
        onClick={() => onReview({ agentId: pin.agentId, path: pin.path })}
      >
        Review
      </Button>
    </li>
  );
}

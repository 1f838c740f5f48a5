import { useMemo } from "react";
import { Link } from "react-router";
import { fileUrl } from "../../api/files";
import type { Inbox } from "../../api/inbox";
import { DEFAULTS_ID } from "../../api/pins";
import { Button, ButtonLink } from "../../components/button";
import { escapeText } from "../../components/escape-text";

type Pin = Inbox["pins"][number];
type ReviewTarget = { agentId: string; path: string };

const MAX_PER_GROUP = 6;

interface PendingUpdatesProps {
  inbox: Inbox;
  onReview: (target: ReviewTarget) => void;
}

/** Updates to review, grouped by template and file. */
export function PendingUpdates({ inbox, onReview }: PendingUpdatesProps) {
  const groups = useMemo(() => groupPins(inbox.pins), [inbox.pins]);
  const { counts, pins } = inbox;
  return (
    <>
      {groups.map((group) => (
        <UpdateGroup key={groupKey(group[0] as Pin)} pins={group} onReview={onReview} />
      ))}
      {counts.pins > pins.length && (
        <p className="faint">
          Showing {pins.length.toLocaleString("en")} of {counts.pins.toLocaleString("en")} updates.
        </p>
      )}
    </>
  );
}

const groupKey = ({ templateId, path }: Pin) => `${templateId ?? ""} ${path}`;

function groupPins(pins: Pin[]): Pin[][] {
  const groups = new Map<string, Pin[]>();
  for (const pin of pins) groups.set(groupKey(pin), [...(groups.get(groupKey(pin)) ?? []), pin]);
  return [...groups.values()].sort((a, b) => b.length - a.length);
}

function UpdateGroup({
  pins,
  onReview,
}: {
  pins: Pin[];
  onReview: PendingUpdatesProps["onReview"];
}) {
  const { path, templateId, templateName } = pins[0] as Pin;
  const hiddenCount = pins.length - MAX_PER_GROUP;
  const reviewUrl = `/agent-templates/${encodeURIComponent(templateId ?? DEFAULTS_ID)}/review?file=${encodeURIComponent(path)}`;
  return (
    <section className="card inbox-group">
      <header>
        <h2 className="grow truncate">
          {escapeText(path, 80)}{" "}
          <span className="soft bidi">{escapeText(templateName ?? "Defaults", 60)}</span>
        </h2>
        <span className="badge update">
          {pins.length === 1 ? "1 agent" : `${pins.length} agents`}
        </span>
        <ButtonLink small kind="primary" to={reviewUrl}>
          Review for all
        </ButtonLink>
      </header>
      <ul className="inbox-list">
        {pins.slice(0, MAX_PER_GROUP).map((pin) => (
          <PendingUpdateRow key={pin.agentId} pin={pin} onReview={onReview} />
        ))}
      </ul>
      {hiddenCount > 0 && (
        <p className="card-body">
          <Link to={reviewUrl}>{hiddenCount.toLocaleString("en")} more</Link>
        </p>
      )}
    </section>
  );
}

function PendingUpdateRow({
  pin,
  onReview,
}: {
  pin: Pin;
  onReview: PendingUpdatesProps["onReview"];
}) {
  const name = escapeText(pin.agentName, 80);
  return (
    <li className="row">
      <Link
        className="grow truncate bidi"
        to={fileUrl({ kind: "agent", id: pin.agentId }, pin.path)}
      >
        {name}
      </Link>
      {pin.mine && <span className="badge">mine</span>}
      {pin.newlyOffered && <span className="badge accent">new</span>}
      <Button
        small
        aria-label={`Review ${escapeText(pin.path, 80)} for ${name}`}
        onClick={() => onReview({ agentId: pin.agentId, path: pin.path })}
      >
        Review
      </Button>
    </li>
  );
}

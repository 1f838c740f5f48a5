import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { fileUrl } from "../../api/files";
import { type Inbox, type InboxGroup, type WaitingPin, waitingPinsQuery } from "../../api/inbox";
import { DEFAULTS_ID } from "../../api/pins";
import { Button, ButtonLink } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { ErrorNotice, Loading } from "../../components/query-states";

type ReviewTarget = { agentId: string; path: string };

interface PendingUpdatesProps {
  inbox: Inbox;
  mine: boolean;
  onReview: (target: ReviewTarget) => void;
}

const GROUPS_PER_PAGE = 20;

/** Updates to review, one group for each edit of a template or of the defaults. */
export function PendingUpdates({ inbox: { groups }, mine, onReview }: PendingUpdatesProps) {
  const [shown, setShown] = useState(GROUPS_PER_PAGE);
  return (
    <>
      {groups.slice(0, shown).map((group) => (
        <UpdateGroup key={groupKey(group)} group={group} mine={mine} onReview={onReview} />
      ))}
      {groups.length > shown && (
        <div className="row">
          <Button onClick={() => setShown(shown + GROUPS_PER_PAGE)}>Show more updates</Button>
          <span className="faint">
            {shown} of {groups.length.toLocaleString("en")}
          </span>
        </div>
      )}
    </>
  );
}

const groupKey = ({ templateId, path }: InboxGroup) => `${templateId ?? ""} ${path}`;

const count = (number: number, noun: string) =>
  `${number.toLocaleString("en")} ${number === 1 ? noun : `${noun}s`}`;

interface UpdateGroupProps {
  group: InboxGroup;
  mine: boolean;
  onReview: PendingUpdatesProps["onReview"];
}

function UpdateGroup({ group, mine, onReview }: UpdateGroupProps) {
  const { path, templateId, templateName, count: agents, overridden } = group;
  const [onlyOverridden, setOnlyOverridden] = useState(false);
  const reviewUrl = `/agent-templates/${encodeURIComponent(templateId ?? DEFAULTS_ID)}/review?file=${encodeURIComponent(path)}`;
  return (
    <section className="card inbox-group">
      <header>
        <h2 className="grow truncate">
          {escapeText(path, 80)}{" "}
          <span className="soft bidi">{escapeText(templateName ?? "Defaults", 60)}</span>
        </h2>
        {overridden > 0 && (
          <Button
            small
            aria-pressed={onlyOverridden}
            onClick={() => setOnlyOverridden(!onlyOverridden)}
          >
            {count(overridden, "override")}
          </Button>
        )}
        <span className="badge update">{count(agents, "agent")}</span>
        <ButtonLink small kind="primary" to={reviewUrl}>
          Review for all
        </ButtonLink>
      </header>
      <WaitingAgents
        key={String(onlyOverridden)}
        group={group}
        filters={{ mine, overridden: onlyOverridden }}
        onReview={onReview}
      />
    </section>
  );
}

interface WaitingAgentsProps {
  group: InboxGroup;
  filters: { mine: boolean; overridden: boolean };
  onReview: PendingUpdatesProps["onReview"];
}

function WaitingAgents({ group, filters, onReview }: WaitingAgentsProps) {
  const query = useInfiniteQuery(waitingPinsQuery(group, filters));
  if (query.isError && !query.data) return <ErrorNotice error={query.error} />;
  if (!query.data) return <Loading label="Loading agents" />;
  const pins = query.data.pages.flatMap(({ items }) => items);
  const total = filters.overridden ? group.overridden : group.count;
  return (
    <>
      <ul className="inbox-list">
        {pins.map((pin) => (
          <PendingUpdateRow key={pin.agentId} pin={pin} onReview={onReview} />
        ))}
      </ul>
      {query.hasNextPage && (
        <div className="card-body row">
          <Button small busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show more agents
          </Button>
          <span className="faint">
            {pins.length.toLocaleString("en")} of {total.toLocaleString("en")}
          </span>
        </div>
      )}
    </>
  );
}

function PendingUpdateRow({
  pin,
  onReview,
}: {
  pin: WaitingPin;
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
      {pin.overridden && <span className="badge override">overridden</span>}
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

// Updates tab of a template, or of the defaults: versions in use, and declined updates.

import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { useAuthorNames } from "../../api/authors";
import { DEFAULTS, type FileRow, filesQuery, fileUrl } from "../../api/files";
import { DEFAULTS_ID } from "../../api/pins";
import { declinesQuery, type Review } from "../../api/reviews";
import { isAdmin } from "../../api/session";
import { escapeText } from "../../components/escape-text";
import { QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { VersionBar } from "../review/version-bar";
import { useTemplateScope } from "./template-context";

export default function TemplateUpdates() {
  const scope = useTemplateScope();
  const id = scope.kind === "defaults" ? DEFAULTS_ID : scope.id;
  const files = useQuery(filesQuery(scope));
  const defaults = useQuery(filesQuery(DEFAULTS));
  const admin = isAdmin(useSession());
  return (
    <div className="stack">
      <section className="card">
        <header>
          <h2 className="grow">Versions in use</h2>
        </header>
        <div className="card-body stack">
          <QueryResult query={files}>
            {(items) => {
              const paths = pinnedPaths([...items, ...(defaults.data ?? [])]);
              if (paths.length === 0) return <p className="faint">No pinned files.</p>;
              return paths.map((path) => (
                <VersionBar key={path} templateId={id} path={path} named />
              ));
            }}
          </QueryResult>
        </div>
      </section>
      {admin && <Declines templateId={id} />}
    </div>
  );
}

const pinnedPaths = (files: FileRow[]) =>
  [...new Set(files.filter((file) => file.class === "pinned").map(({ path }) => path))].toSorted();

/** Who declined which update, and why. */
function Declines({ templateId }: { templateId: string }) {
  const query = useQuery(declinesQuery(templateId));
  const isShown = (review: Review) => templateId !== DEFAULTS_ID || review.templateId === null;
  return (
    <section className="card">
      <header>
        <h2 className="grow">Declined updates</h2>
        <Link to="/inbox?done">All reviews</Link>
      </header>
      <QueryResult query={query}>
        {({ items }) => {
          const declines = items.filter(isShown);
          if (declines.length === 0) return <p className="card-body faint">None.</p>;
          return (
            <ul className="inbox-list review-list">
              {declines.map((review) => (
                <DeclineRow key={review.id} review={review} />
              ))}
            </ul>
          );
        }}
      </QueryResult>
    </section>
  );
}

function DeclineRow({ review }: { review: Review }) {
  const authorOf = useAuthorNames();
  const agents = review.changed === 1 ? "1 agent" : `${review.changed.toLocaleString("en")} agents`;
  return (
    <li className="row wrap">
      <span className="mono truncate">{escapeText(review.path, 80)}</span>
      {review.agentId ? (
        <Link className="bidi" to={fileUrl({ kind: "agent", id: review.agentId }, review.path)}>
          {escapeText(review.agentName ?? review.agentId, 60)}
        </Link>
      ) : (
        <span>{agents}</span>
      )}
      <span className="grow soft bidi review-reason">{escapeText(review.reason, 300)}</span>
      {review.rolledBackBy && <span className="badge">Rolled back</span>}
      <span className="faint bidi">{authorOf(review.author)}</span>
      <Time at={review.at} />
    </li>
  );
}

// Who did what to the account's records, newest first.

import { useInfiniteQuery } from "@tanstack/react-query";
import { ScrollText } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { addressOfSubject, auditQuery, type Deed } from "../../api/audit";
import { may } from "../../api/session";
import { OnlyAdmins } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { Who } from "../../components/principal-name";
import { Empty, Loading, Refused } from "../../components/query-states";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { Part } from "./settings-section";

export default function Audit() {
  const able = may(useSession(), "tenant:admin");
  return (
    <Part title="Audit" under="Who changed which records, and why. It is only ever added to.">
      {able ? <Log /> : <OnlyAdmins what="The audit" />}
    </Part>
  );
}

function Log() {
  const log = useInfiniteQuery(auditQuery);
  const [sought, setSought] = useState("");
  if (log.isError && !log.data) return <Refused error={log.error} />;
  if (!log.data) return <Loading />;
  const deeds = log.data.pages.flatMap(({ items }) => items);
  const words = sought.toLowerCase();
  const found = deeds.filter(({ by, why, subjects }) =>
    [by, why, ...subjects].join(" ").toLowerCase().includes(words),
  );
  return (
    <>
      <SearchField label="Filter by text" value={sought} onChange={setSought} />
      {found.length ? (
        <Table deeds={found} />
      ) : (
        <Empty icon={ScrollText} title={sought ? "Nothing has that in it" : "Nothing was done yet"}>
          <p>{sought && `Of the ${deeds.length} entries that are loaded.`}</p>
        </Empty>
      )}
      <div className="row wrap">
        {log.hasNextPage && (
          <Button busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
            Older entries
          </Button>
        )}
        <span className="faint" role="status">
          {found.length} of {deeds.length} loaded{log.hasNextPage ? "" : ", which is all there is"}
        </span>
      </div>
    </>
  );
}

function Table({ deeds }: { deeds: Deed[] }) {
  return (
    <div className="table-wrap">
      <table className="table roomy">
        <thead>
          <tr>
            <th>When</th>
            <th>Who</th>
            <th>What</th>
            <th>Of</th>
          </tr>
        </thead>
        <tbody>
          {deeds.map((deed) => (
            <tr key={deed.id}>
              <td className="unbroken">
                <Time at={deed.at} />
              </td>
              <td>
                <Who id={deed.by} />
              </td>
              <td className="bidi">{plain(deed.why, 300)}</td>
              <td>
                <ul className="lines">
                  {deed.subjects.slice(0, 5).map((subject) => (
                    <li key={subject}>
                      <Subject subject={subject} />
                    </li>
                  ))}
                  {deed.subjects.length > 5 && (
                    <li className="faint">and {deed.subjects.length - 5} more</li>
                  )}
                </ul>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Subject({ subject }: { subject: string }) {
  const to = addressOfSubject(subject);
  const said = plain(subject, 60);
  return to ? (
    <Link className="mono" to={to}>
      {said}
    </Link>
  ) : (
    <code>{said}</code>
  );
}

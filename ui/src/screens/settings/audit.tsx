// Audit log, newest first.

import { useInfiniteQuery } from "@tanstack/react-query";
import { ScrollText } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";
import { type AuditEntry, auditQuery, subjectUrl } from "../../api/audit";
import { hasPermission } from "../../api/session";
import { AdminNotice } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { PrincipalName } from "../../components/principal-name";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { SettingsSection } from "./settings-section";

export default function Audit() {
  const canRead = hasPermission(useSession(), "tenant:admin");
  return (
    <SettingsSection
      title="Audit log"
      description="Who changed which records, and why. Entries are never changed."
    >
      {canRead ? <AuditLog /> : <AdminNotice feature="view the audit log" />}
    </SettingsSection>
  );
}

function AuditLog() {
  const log = useInfiniteQuery(auditQuery);
  const [filter, setFilter] = useState("");
  if (log.isError && !log.data) return <ErrorNotice error={log.error} />;
  if (!log.data) return <Loading />;
  const entries = log.data.pages.flatMap(({ items }) => items);
  const needle = filter.toLowerCase();
  const matches = entries.filter(({ by, why, subjects }) =>
    [by, why, ...subjects].join(" ").toLowerCase().includes(needle),
  );
  return (
    <>
      <SearchField label="Filter" value={filter} onChange={setFilter} />
      {matches.length ? (
        <Table entries={matches} />
      ) : (
        <EmptyState icon={ScrollText} title={filter ? "No matching entries" : "No entries yet"}>
          <p>{filter && `Searched ${entries.length} loaded entries.`}</p>
        </EmptyState>
      )}
      <div className="row wrap">
        {log.hasNextPage && (
          <Button busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
            Load more
          </Button>
        )}
        <span className="faint" role="status">
          {matches.length} of {entries.length} loaded entries
        </span>
      </div>
    </>
  );
}

function Table({ entries }: { entries: AuditEntry[] }) {
  return (
    <div className="table-wrap">
      <table className="table wide-table">
        <thead>
          <tr>
            <th>Time</th>
            <th>Author</th>
            <th>Action</th>
            <th>Records</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.id}>
              <td className="nowrap">
                <Time at={entry.at} />
              </td>
              <td>
                <PrincipalName id={entry.by} />
                {entry.key && entry.key.id !== entry.by && (
                  <div className="faint bidi" title={entry.key.id}>
                    with key {escapeText(entry.key.name, 60)}
                  </div>
                )}
              </td>
              <td className="bidi">{escapeText(entry.why, 300)}</td>
              <td>
                <ul className="lines">
                  {entry.subjects.slice(0, 5).map((subject) => (
                    <li key={subject}>
                      <Subject subject={subject} />
                    </li>
                  ))}
                  {entry.subjects.length > 5 && (
                    <li className="faint">{entry.subjects.length - 5} more</li>
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
  const to = subjectUrl(subject);
  const text = escapeText(subject, 60);
  return to ? (
    <Link className="mono" to={to}>
      {text}
    </Link>
  ) : (
    <code>{text}</code>
  );
}

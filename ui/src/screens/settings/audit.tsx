// Audit log, newest first; filters are part of the URL and applied by the server.

import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { Download, ScrollText } from "lucide-react";
import { useSearchParams } from "react-router";
import { type AuditFilters, auditExportUrl, auditQuery } from "../../api/audit";
import { hasPermission } from "../../api/session";
import { AdminNotice } from "../../components/admin-notice";
import { Button } from "../../components/button";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { useSession } from "../../layout/session-context";
import { AuditFilterBar } from "./audit-filter-bar";
import { AuditTable } from "./audit-table";
import { SettingsSection } from "./settings-section";

const NO_FILTERS: AuditFilters = { who: "", action: "", object: "", from: "", to: "" };

export default function Audit() {
  const canRead = hasPermission(useSession(), "tenant:admin");
  return (
    <SettingsSection
      title="Audit log"
      description="Who did what, to which records, and why. Entries are never changed."
    >
      {canRead ? <AuditLog /> : <AdminNotice feature="view the audit log" />}
    </SettingsSection>
  );
}

function useAuditFilters() {
  const [params, setParams] = useSearchParams();
  const filters = { ...NO_FILTERS };
  for (const name of Object.keys(NO_FILTERS) as (keyof AuditFilters)[])
    filters[name] = params.get(name) ?? "";
  const setFilters = (patch: Partial<AuditFilters>) => {
    const entries = Object.entries({ ...filters, ...patch }).filter(([, value]) => value);
    setParams(new URLSearchParams(entries), { replace: true });
  };
  return [filters, setFilters] as const;
}

function AuditLog() {
  const [filters, setFilters] = useAuditFilters();
  const log = useInfiniteQuery({ ...auditQuery(filters), placeholderData: keepPreviousData });
  const entries = log.data?.pages.flatMap(({ items }) => items) ?? [];
  const total = log.data?.pages[0]?.total ?? entries.length;
  const isFiltered = Object.values(filters).some(Boolean);
  return (
    <>
      <AuditFilterBar filters={filters} setFilters={setFilters} />
      {log.isError && <ErrorNotice error={log.error} />}
      {log.isPending && <Loading />}
      {log.data && entries.length > 0 && <AuditTable entries={entries} setFilters={setFilters} />}
      {log.data && entries.length === 0 && (
        <EmptyState icon={ScrollText} title={isFiltered ? "No matching entries" : "No entries yet"}>
          {isFiltered && <Button onClick={() => setFilters(NO_FILTERS)}>Clear filters</Button>}
        </EmptyState>
      )}
      <div className="row wrap">
        {log.hasNextPage && (
          <Button busy={log.isFetchingNextPage} onClick={() => void log.fetchNextPage()}>
            Load more
          </Button>
        )}
        <span className="faint grow" role="status">
          {log.data && `${entries.length.toLocaleString("en")} of ${total.toLocaleString("en")}`}
        </span>
        {(["csv", "json"] as const).map((format) => (
          <a key={format} className="button" href={auditExportUrl(filters, format)} download>
            <Download size={14} aria-hidden /> Export {format.toUpperCase()}
          </a>
        ))}
      </div>
    </>
  );
}

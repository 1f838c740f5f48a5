// Files of a scope: tree on the left, open file on the right.

import { useQuery } from "@tanstack/react-query";
import { FilePlus2, FileText } from "lucide-react";
import { type ReactNode, useMemo, useRef, useState } from "react";
import { DEFAULTS, type FileScope, filesQuery } from "../../api/files";
import { hasPermission, isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { EmptyState, QueryResult } from "../../components/query-states";
import { useSession } from "../../layout/session-context";
import { FilePane } from "./file-pane";
import { type TreeRow, treeRows } from "./file-rows";
import { Legend } from "./file-status";
import { FileTree } from "./file-tree";
import { NewFileDialog } from "./new-file-dialog";
import { filterRows } from "./tree-model";
import { useFileUrl } from "./use-file-url";

interface FileBrowserProps {
  scope: FileScope;
  /** Shown if there are no files. */
  empty?: ReactNode;
  /** URL of the agent's human setting, which USER.md depends on. */
  pairingUrl?: string;
  /** Read-only for every role. */
  readOnly?: boolean;
}

export function FileBrowser({ scope, empty, pairingUrl, readOnly }: FileBrowserProps) {
  const files = useQuery(filesQuery(scope));
  const defaults = useQuery({ ...filesQuery(DEFAULTS), enabled: scope.kind === "template" });
  const rows = useMemo(
    () => (files.data ? treeRows(scope, files.data, defaults.data) : []),
    [scope, files.data, defaults.data],
  );
  const fileUrl = useFileUrl();
  const [isCreating, setCreating] = useState(false);
  const canWrite = useCanWrite(scope) && !readOnly;
  const path = fileUrl.path;
  return (
    <div className={path === null ? "file-browser" : "file-browser file-open"}>
      <QueryResult query={files} label="Loading files">
        {() => (
          <FileList
            scope={scope}
            rows={rows}
            selected={path}
            onOpen={fileUrl.openFile}
            onNew={canWrite ? () => setCreating(true) : null}
          />
        )}
      </QueryResult>
      <section className="file-main" aria-label="File">
        {path === null && files.data && <NoOpenFile isEmpty={!rows.length}>{empty}</NoOpenFile>}
        {path !== null && files.data && (scope.kind !== "template" || defaults.data) && (
          <KeepLastRow
            key={`${scope.kind}/${scope.id}/${path}`}
            row={rows.find((row) => row.path === path) ?? null}
          >
            {(row, isDeleted) => (
              <FilePane
                {...{ scope, path, row, isDeleted, canWrite, pairingUrl, fileUrl }}
                onNew={() => setCreating(true)}
              />
            )}
          </KeepLastRow>
        )}
      </section>
      {isCreating && (
        <NewFileDialog
          scope={scope}
          rows={rows}
          suggestion={path !== null && !rows.some((row) => row.path === path) ? path : ""}
          onCreated={fileUrl.openFile}
          onClose={() => setCreating(false)}
        />
      )}
    </div>
  );
}

/** Keeps the last row of a deleted file, so that its draft is not lost. */
function KeepLastRow({
  row,
  children,
}: {
  row: TreeRow | null;
  children: (row: TreeRow | null, isDeleted: boolean) => ReactNode;
}) {
  const last = useRef(row);
  if (row) last.current = row;
  return children(row ?? last.current, !row);
}

function useCanWrite(scope: FileScope): boolean {
  const session = useSession();
  return scope.kind === "workspace" ? hasPermission(session, "workspace:write") : isAdmin(session);
}

interface FileListProps {
  scope: FileScope;
  rows: TreeRow[];
  selected: string | null;
  onOpen: (path: string) => void;
  onNew: (() => void) | null;
}

function FileList({ scope, rows, selected, onOpen, onNew }: FileListProps) {
  const [filter, setFilter] = useState("");
  const visible = useMemo(() => filterRows(rows, filter), [rows, filter]);
  return (
    <section className="file-sidebar" aria-label="Files">
      <div className="file-tools">
        <SearchField
          label="Filter files"
          placeholder="Filter"
          value={filter}
          onChange={setFilter}
        />
        {onNew && <Button icon={FilePlus2} aria-label="New file" onClick={onNew} />}
      </div>
      {visible.length > 0 && (
        <FileTree
          label="Files"
          rows={visible}
          selected={selected}
          onOpen={onOpen}
          showDefaultsBadge={scope.kind === "template"}
          expandAll={filter.trim() !== ""}
        />
      )}
      {rows.length > 0 && visible.length === 0 && (
        <p className="no-matches faint">No files match “{escapeText(filter, 60)}”.</p>
      )}
      <div className="file-footer">
        <span className="faint" role="status">
          {rows.length === 1 ? "1 file" : `${rows.length.toLocaleString("en")} files`}
          {visible.length !== rows.length && `, ${visible.length.toLocaleString("en")} shown`}
        </span>
        <Legend kind={scope.kind} />
      </div>
    </section>
  );
}

function NoOpenFile({ isEmpty, children }: { isEmpty: boolean; children: ReactNode }) {
  if (isEmpty && children) return <>{children}</>;
  return (
    <EmptyState icon={FileText} title={isEmpty ? "No files yet" : "No file selected"}>
      <p>
        {isEmpty ? "Create one with the button above the list." : "Select a file from the list."}
      </p>
    </EmptyState>
  );
}

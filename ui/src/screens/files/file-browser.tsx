// The files of a place: the tree on the left, what is open on the right.

import { useQuery } from "@tanstack/react-query";
import { FilePlus2, FileText } from "lucide-react";
import { type ReactNode, useMemo, useRef, useState } from "react";
import { DEFAULTS, filesQuery, type Place } from "../../api/files";
import { isAdmin, may } from "../../api/session";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { SearchField } from "../../components/field";
import { Empty, Shown } from "../../components/query-states";
import { useSession } from "../../layout/session-context";
import { FilePane } from "./file-pane";
import { type Row, rowsOf } from "./file-rows";
import { Legend } from "./file-status";
import { Tree } from "./file-tree";
import { NewFileDialog } from "./new-file-dialog";
import { matching } from "./tree-model";
import { useOpened } from "./use-file-url";

interface WorkspaceProps {
  place: Place;
  /** What stands where there are no files at all. */
  empty?: ReactNode;
  /** Where USER.md comes from can be changed there. */
  humanAddress?: string;
  /** Nobody may write here, whatever their role. */
  readOnly?: boolean;
}

export function Workspace({ place, empty, humanAddress, readOnly }: WorkspaceProps) {
  const own = useQuery(filesQuery(place));
  const beneath = useQuery({ ...filesQuery(DEFAULTS), enabled: place.kind === "template" });
  const rows = useMemo(
    () => (own.data ? rowsOf(place, own.data, beneath.data) : []),
    [place, own.data, beneath.data],
  );
  const opened = useOpened();
  const [isMaking, setMaking] = useState(false);
  const canWrite = useMayWrite(place) && !readOnly;
  const path = opened.path;
  return (
    <div className={path === null ? "file-desk" : "file-desk reading"}>
      <Shown query={own} what="Loading the files">
        {() => (
          <FileList
            place={place}
            rows={rows}
            selected={path}
            onOpen={opened.open}
            onNew={canWrite ? () => setMaking(true) : null}
          />
        )}
      </Shown>
      <section className="workspace-main" aria-label="File">
        {path === null && own.data && <Nothing isEmpty={!rows.length}>{empty}</Nothing>}
        {path !== null && own.data && (place.kind !== "template" || beneath.data) && (
          <Held
            key={`${place.kind}/${place.id}/${path}`}
            row={rows.find((each) => each.path === path) ?? null}
          >
            {(row, gone) => (
              <FilePane
                {...{ place, path, row, gone, canWrite, humanAddress, opened }}
                onNew={() => setMaking(true)}
              />
            )}
          </Held>
        )}
      </section>
      {isMaking && (
        <NewFileDialog
          place={place}
          rows={rows}
          suggestion={path !== null && !rows.some((row) => row.path === path) ? path : ""}
          onMade={opened.open}
          onClose={() => setMaking(false)}
        />
      )}
    </div>
  );
}

/** Keeps a row that vanished, so that a draft of it does not vanish too. */
function Held({
  row,
  children,
}: {
  row: Row | null;
  children: (row: Row | null, gone: boolean) => ReactNode;
}) {
  const last = useRef(row);
  if (row) last.current = row;
  return children(row ?? last.current, !row);
}

function useMayWrite(place: Place): boolean {
  const session = useSession();
  return place.kind === "workspace" ? may(session, "workspace:write") : isAdmin(session);
}

interface FileListProps {
  place: Place;
  rows: Row[];
  selected: string | null;
  onOpen: (path: string) => void;
  onNew: (() => void) | null;
}

function FileList({ place, rows, selected, onOpen, onNew }: FileListProps) {
  const [asked, setAsked] = useState("");
  const shown = useMemo(() => matching(rows, asked), [rows, asked]);
  return (
    <section className="workspace-side" aria-label="Files">
      <div className="workspace-tools">
        <SearchField
          label="Filter the files"
          placeholder="Filter"
          value={asked}
          onChange={setAsked}
        />
        {onNew && <Button icon={FilePlus2} aria-label="New file" onClick={onNew} />}
      </div>
      {shown.length > 0 && (
        <Tree
          label="Files"
          rows={shown}
          selected={selected}
          onOpen={onOpen}
          badged={place.kind === "template"}
          unfolded={asked.trim() !== ""}
        />
      )}
      {rows.length > 0 && shown.length === 0 && (
        <p className="workspace-none faint">No path has “{plain(asked, 60)}” in it.</p>
      )}
      <div className="workspace-foot">
        <span className="faint" role="status">
          {rows.length === 1 ? "1 file" : `${rows.length.toLocaleString("en")} files`}
          {shown.length !== rows.length && `, ${shown.length.toLocaleString("en")} shown`}
        </span>
        <Legend kind={place.kind} />
      </div>
    </section>
  );
}

function Nothing({ isEmpty, children }: { isEmpty: boolean; children: ReactNode }) {
  if (isEmpty && children) return <>{children}</>;
  return (
    <Empty icon={FileText} title={isEmpty ? "No files yet" : "No file is open"}>
      <p>
        {isEmpty
          ? "The first file is made with the button over the list, or by a PUT of the API."
          : "Choose one from the list. In the list, arrows move, Enter opens, and a letter jumps to the next name that begins with it."}
      </p>
    </Empty>
  );
}

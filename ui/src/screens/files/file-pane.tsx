// One file: read first, then laid open in the editor.

import { useQuery } from "@tanstack/react-query";
import { FileQuestion } from "lucide-react";
import { useRef } from "react";
import { fileQuery, type Place } from "../../api/files";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { Empty, Loading, Refused } from "../../components/query-states";
import { OpenFile } from "./file-editor";
import { FileHead } from "./file-header";
import { Panel } from "./file-panel";
import type { Row } from "./file-rows";
import type { useOpened } from "./use-file-url";
import { readingPlace } from "./use-save-file";

export interface FilePaneProps {
  place: Place;
  path: string;
  /** Null where there never was such a file while one looked. */
  row: Row | null;
  /** It was there, and is there no more. */
  gone: boolean;
  canWrite: boolean;
  humanAddress?: string;
  opened: ReturnType<typeof useOpened>;
  onNew: () => void;
}

export function FilePane(props: FilePaneProps) {
  const { row, path, canWrite, opened, onNew } = props;
  if (row) return <FoundFile {...props} row={row} />;
  return (
    <>
      <Empty icon={FileQuestion} title="There is no such file">
        <p>
          Nothing is at <span className="mono bidi">{plain(path, 120)}</span>. It may have been
          deleted; its history may still be there.
        </p>
        <div className="row wrap">
          <Button onClick={() => opened.open(null)}>To the list</Button>
          <Button onClick={() => opened.show("history")}>History</Button>
          {canWrite && <Button onClick={onNew}>Make it</Button>}
        </div>
      </Empty>
      <Panel {...props} onClose={() => opened.show(null)} name={opened.panel} file={null} />
    </>
  );
}

export type FoundProps = FilePaneProps & { row: Row };

function FoundFile(props: FoundProps) {
  const { place, row, path } = props;
  const file = useQuery(fileQuery(readingPlace(place, row), path));
  // Once open it stays open, whatever becomes of it elsewhere: there may be a draft in it.
  const held = useRef(file.data);
  if (file.data) held.current = file.data;
  if (held.current) return <OpenFile {...props} file={held.current} />;
  if (!file.isError) return <Loading what="Loading the file" />;
  return (
    <div className="file">
      <FileHead {...props} base={row.file} />
      <div className="file-notices">
        <Refused error={file.error} again={() => void file.refetch()} />
      </div>
    </div>
  );
}

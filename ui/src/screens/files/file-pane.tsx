// One file: read first, then laid open in the editor.

import { useQuery } from "@tanstack/react-query";
import { FileQuestion } from "lucide-react";
import { useRef } from "react";
import { type FileScope, fileQuery } from "../../api/files";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { FileEditor } from "./file-editor";
import { FileHeader } from "./file-header";
import { FilePanel } from "./file-panel";
import type { TreeRow } from "./file-rows";
import type { useFileUrl } from "./use-file-url";
import { sourceScope } from "./use-save-file";

export interface FilePaneProps {
  scope: FileScope;
  path: string;
  /** Null where there never was such a file while one looked. */
  row: TreeRow | null;
  /** It was there, and is there no more. */
  isDeleted: boolean;
  canWrite: boolean;
  pairingUrl?: string;
  fileUrl: ReturnType<typeof useFileUrl>;
  onNew: () => void;
}

export function FilePane(props: FilePaneProps) {
  const { row, path, canWrite, fileUrl, onNew } = props;
  if (row) return <ExistingFile {...props} row={row} />;
  return (
    <>
      <EmptyState icon={FileQuestion} title="There is no such file">
        <p>
          Nothing is at <span className="mono bidi">{escapeText(path, 120)}</span>. It may have been
          deleted; its history may still be there.
        </p>
        <div className="row wrap">
          <Button onClick={() => fileUrl.openFile(null)}>To the list</Button>
          <Button onClick={() => fileUrl.showPanel("history")}>History</Button>
          {canWrite && <Button onClick={onNew}>Make it</Button>}
        </div>
      </EmptyState>
      <FilePanel
        {...props}
        onClose={() => fileUrl.showPanel(null)}
        name={fileUrl.panel}
        file={null}
      />
    </>
  );
}

export type OpenFileProps = FilePaneProps & { row: TreeRow };

function ExistingFile(props: OpenFileProps) {
  const { scope, row, path } = props;
  const file = useQuery(fileQuery(sourceScope(scope, row), path));
  // Once open it stays open, whatever becomes of it elsewhere: there may be a draft in it.
  const lastFile = useRef(file.data);
  if (file.data) lastFile.current = file.data;
  if (lastFile.current) return <FileEditor {...props} file={lastFile.current} />;
  if (!file.isError) return <Loading label="Loading the file" />;
  return (
    <div className="file">
      <FileHeader {...props} base={row.file} />
      <div className="file-notices">
        <ErrorNotice error={file.error} onRetry={() => void file.refetch()} />
      </div>
    </div>
  );
}

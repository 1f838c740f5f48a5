// Loads a file and shows it in the editor.

import { useQuery } from "@tanstack/react-query";
import { FileQuestion } from "lucide-react";
import { useRef } from "react";
import { type FileScope, fileQuery } from "../../api/files";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { BinaryFile } from "./binary-file";
import { FileEditor } from "./file-editor";
import { FileHeader } from "./file-header";
import { FilePanel } from "./file-panel";
import type { TreeRow } from "./file-rows";
import type { useFileUrl } from "./use-file-url";
import { sourceScope } from "./use-save-file";

export interface FilePaneProps {
  scope: FileScope;
  path: string;
  /** Null if the file has not existed since the page was opened. */
  row: TreeRow | null;
  /** The file was deleted while it was open. */
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
      <EmptyState icon={FileQuestion} title="File not found">
        <p>
          <span className="mono bidi">{escapeText(path, 120)}</span> does not exist or was deleted.
        </p>
        <div className="row wrap">
          <Button onClick={() => fileUrl.openFile(null)}>All files</Button>
          <Button onClick={() => fileUrl.showPanel("history")}>History</Button>
          {canWrite && <Button onClick={onNew}>Create file</Button>}
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
  // An open file stays open even if it is deleted elsewhere: there may be a draft.
  const lastFile = useRef(file.data);
  if (file.data) lastFile.current = file.data;
  if (lastFile.current?.encoding) {
    return (
      <div className="file">
        <FileHeader {...props} base={row.file} />
        <BinaryFile file={lastFile.current} />
      </div>
    );
  }
  if (lastFile.current) return <FileEditor {...props} file={lastFile.current} />;
  if (!file.isError) return <Loading label="Loading file" />;
  return (
    <div className="file">
      <FileHeader {...props} base={row.file} />
      <div className="file-notices">
        <ErrorNotice error={file.error} onRetry={() => void file.refetch()} />
      </div>
    </div>
  );
}

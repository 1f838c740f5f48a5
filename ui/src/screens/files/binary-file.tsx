// A file that is not text: its type and a download instead of the editor.

import { FileDigit } from "lucide-react";
import type { File } from "../../api/files";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { EmptyState } from "../../components/query-states";

export function BinaryFile({ file }: { file: File }) {
  return (
    <EmptyState icon={FileDigit} title="Not a text file">
      <p>
        <span className="mono bidi">{escapeText(file.contentType, 120)}</span> cannot be edited
        here.
      </p>
      <Button onClick={() => download(file)}>Download</Button>
    </EmptyState>
  );
}

/** Saves the content under the last part of the path. */
function download(file: File) {
  const bytes = Uint8Array.from(atob(file.content ?? ""), (character) => character.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = file.path.split("/").at(-1) ?? "file";
  link.click();
  URL.revokeObjectURL(url);
}

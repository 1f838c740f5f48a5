// Header of a file: path, source, version and actions.

import { ArrowLeft, Eye, EyeOff, History, Layers2, Trash2 } from "lucide-react";
import { useState } from "react";
import type { FileRow } from "../../api/files";
import { Button } from "../../components/button";
import { CopyButton } from "../../components/copy-button";
import { escapeText } from "../../components/escape-text";
import { Time } from "../../components/time";
import type { OpenFileProps } from "./file-pane";
import { StatusIcon, statusLabel } from "./file-status";
import { fileName } from "./paths";
import { RemoveDialog, removalOf } from "./remove-dialog";

interface FileHeaderProps extends OpenFileProps {
  base: FileRow;
  preview?: { isOpen: boolean; toggle: () => void };
}

const CLASS_HINTS = {
  live: "Changes in lower layers apply immediately.",
  pinned: "Changes in lower layers apply after review.",
  managed: "Generated from the profile of the agent’s human.",
};

export function FileHeader({ base, preview, ...props }: FileHeaderProps) {
  const { row, fileUrl, scope } = props;
  const folder = row.path.slice(0, -fileName(row.path).length);
  return (
    <header className="file-header">
      <Button
        kind="plain"
        className="only-small"
        icon={ArrowLeft}
        aria-label="All files"
        onClick={() => fileUrl.openFile(null)}
      />
      <div className="file-title">
        <div className="row">
          <h2 className="truncate bidi" title={escapeText(row.path, 400)}>
            {folder && <span className="folder">{escapeText(folder, 120)}</span>}
            {escapeText(fileName(row.path), 120)}
          </h2>
          <CopyButton text={row.path} label="Copy path" />
        </div>
        <div className="row wrap faint">
          {scope.kind !== "workspace" && (
            <span className="row tight">
              <StatusIcon status={row.status} />
              {statusLabel({ ...row, pinned: false, managed: false })}
            </span>
          )}
          {scope.kind !== "workspace" && (
            <span className="badge" title={CLASS_HINTS[base.class]}>
              {base.class}
            </span>
          )}
          <span>
            version {base.version}, <Time at={base.updatedAt} />
          </span>
        </div>
      </div>
      <Actions {...props} preview={preview} />
    </header>
  );
}

function Actions({ preview, ...props }: Omit<FileHeaderProps, "base">) {
  const { row, scope, fileUrl, canWrite } = props;
  const [isRemoving, setRemoving] = useState(false);
  const removal = canWrite ? removalOf(scope, row) : null;
  return (
    <div className="row file-actions">
      {preview && (
        <Button
          kind="plain"
          icon={preview.isOpen ? EyeOff : Eye}
          aria-label="Preview"
          aria-pressed={preview.isOpen}
          onClick={preview.toggle}
        />
      )}
      <PanelButton {...{ fileUrl }} name="history" icon={History} label="History" />
      <PanelButton {...{ fileUrl }} name="explain" icon={Layers2} label="Layers" />
      {removal && (
        <Button
          kind="plain"
          icon={Trash2}
          aria-label={removal.label}
          onClick={() => setRemoving(true)}
        />
      )}
      {isRemoving && removal && (
        <RemoveDialog {...props} removal={removal} onClose={() => setRemoving(false)} />
      )}
    </div>
  );
}

function PanelButton({
  fileUrl,
  name,
  icon,
  label,
}: Pick<OpenFileProps, "fileUrl"> & {
  name: "history" | "explain";
  icon: typeof History;
  label: string;
}) {
  const isOpen = fileUrl.panel === name;
  return (
    <Button
      kind="plain"
      icon={icon}
      aria-label={label}
      aria-expanded={isOpen}
      onClick={() => fileUrl.showPanel(isOpen ? null : name)}
    />
  );
}

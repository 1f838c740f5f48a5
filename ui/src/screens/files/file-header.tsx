// What a file is called, where it comes from, and what one may do with it as a whole.

import { ArrowLeft, Eye, EyeOff, History, Layers2, Trash2 } from "lucide-react";
import { useState } from "react";
import type { FileRow } from "../../api/files";
import { Button } from "../../components/button";
import { CopyButton } from "../../components/copy-button";
import { plain } from "../../components/escape-text";
import { Time } from "../../components/time";
import type { FoundProps } from "./file-pane";
import { Sign, wordsOf } from "./file-status";
import { nameOf } from "./paths";
import { RemoveDialog, removalOf } from "./remove-dialog";

interface FileHeadProps extends FoundProps {
  base: FileRow;
  preview?: { isOpen: boolean; toggle: () => void };
}

const MEANS = {
  live: "An edit beneath is seen by the very next read.",
  pinned: "An edit beneath reaches an agent only after a review.",
  managed: "Written from the profile of the paired person.",
};

export function FileHead({ base, preview, ...props }: FileHeadProps) {
  const { row, opened, place } = props;
  const folder = row.path.slice(0, -nameOf(row.path).length);
  return (
    <header className="file-head">
      <Button
        kind="plain"
        className="only-small"
        icon={ArrowLeft}
        aria-label="All files"
        onClick={() => opened.open(null)}
      />
      <div className="file-title">
        <div className="row">
          <h2 className="cut bidi" title={plain(row.path, 400)}>
            {folder && <span className="folder">{plain(folder, 120)}</span>}
            {plain(nameOf(row.path), 120)}
          </h2>
          <CopyButton text={row.path} label="Copy the path" />
        </div>
        <div className="row wrap faint">
          {place.kind !== "workspace" && (
            <span className="row tight">
              <Sign standing={row.standing} />
              {wordsOf({ ...row, pinned: false, managed: false })}
            </span>
          )}
          {place.kind !== "workspace" && (
            <span className="badge" title={MEANS[base.class]}>
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

function Actions({ preview, ...props }: Omit<FileHeadProps, "base">) {
  const { row, place, opened, canWrite } = props;
  const [isRemoving, setRemoving] = useState(false);
  const removal = canWrite ? removalOf(place, row) : null;
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
      <PanelButton {...{ opened }} name="history" icon={History} label="History" />
      <PanelButton {...{ opened }} name="explain" icon={Layers2} label="Explain" />
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
  opened,
  name,
  icon,
  label,
}: Pick<FoundProps, "opened"> & {
  name: "history" | "explain";
  icon: typeof History;
  label: string;
}) {
  const isOpen = opened.panel === name;
  return (
    <Button
      kind="plain"
      icon={icon}
      aria-label={label}
      aria-expanded={isOpen}
      onClick={() => opened.show(isOpen ? null : name)}
    />
  );
}

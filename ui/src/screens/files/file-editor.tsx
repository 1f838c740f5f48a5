// Editor of a file with preview, panels and save bar.

import { useEffect, useRef, useState } from "react";
import type { File } from "../../api/files";
import { escapeText } from "../../components/escape-text";
import { useUnsavedDraft } from "../../components/unsaved-drafts";
import { TextEditor } from "../../editor";
import { FileHeader } from "./file-header";
import { FileNotices } from "./file-notices";
import type { OpenFileProps } from "./file-pane";
import { FilePanel } from "./file-panel";
import { MergeDialog } from "./merge-dialog";
import { OverrideDialog } from "./override-dialog";
import { Preview } from "./preview";
import { SaveBar } from "./save-bar";
import { useDraft } from "./use-draft";
import { useSaveFile } from "./use-save-file";

const PREVIEW_KEY = "carrel-preview";

/** Visibility of the preview; a panel takes its place. */
function usePreview({ panel, showPanel: show }: OpenFileProps["fileUrl"]) {
  const [isEnabled, setEnabled] = useState(() => localStorage.getItem(PREVIEW_KEY) !== "off");
  const isOpen = isEnabled && !panel;
  const toggle = () => {
    localStorage.setItem(PREVIEW_KEY, isOpen ? "off" : "on");
    setEnabled(!isOpen);
    if (panel) show(null);
  };
  return { isOpen, toggle };
}

/** Saves with ⌘S wherever the focus is. */
function useSaveKey(save: () => void) {
  const latestSave = useRef(save);
  latestSave.current = save;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "s" || !(event.metaKey || event.ctrlKey)) return;
      if (event.shiftKey || event.altKey || event.defaultPrevented) return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) latestSave.current();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

export function FileEditor({ file, ...props }: OpenFileProps & { file: File }) {
  const { scope, row, path, isDeleted, canWrite, fileUrl } = props;
  const draft = useDraft(file);
  const saving = useSaveFile(scope, row, draft, isDeleted);
  const preview = usePreview(fileUrl);
  const isManaged = scope.kind === "agent" && row.managed;
  const readOnly = !canWrite || isManaged;
  useSaveKey(() => readOnly || saving.requestSave());
  useUnsavedDraft(draft.isDirty, path);
  return (
    <div className="file">
      <FileHeader {...props} base={draft.base} preview={preview} />
      <FileNotices {...props} {...{ draft, saving, isManaged }} />
      <div className="file-body">
        <div className="file-text">
          <TextEditor
            text={draft.initial.text}
            revision={draft.initial.revision}
            label={`Text of ${escapeText(path, 80)}`}
            readOnly={readOnly}
            onEdit={draft.onEdit}
            onSave={saving.requestSave}
          />
        </div>
        {preview.isOpen && <Preview {...{ scope, path, draft }} />}
        <FilePanel
          {...props}
          name={fileUrl.panel}
          file={file}
          onClose={() => fileUrl.showPanel(null)}
        />
      </div>
      {!readOnly && <SaveBar {...{ scope, path, draft, saving, isDeleted }} />}
      {saving.confirmation && (
        <OverrideDialog
          kind={saving.confirmation}
          scope={scope}
          path={path}
          onConfirm={() => {
            saving.setConfirmation(null);
            saving.saveNow();
          }}
          onClose={() => saving.setConfirmation(null)}
        />
      )}
      {saving.conflict && (
        <MergeDialog
          conflict={saving.conflict}
          scope={scope}
          path={path}
          busy={saving.isSaving}
          onSave={saving.saveNow}
          onEdit={(text, on) => {
            draft.replace(on ?? draft.base, text);
            saving.setConflict(null);
          }}
          onClose={() => saving.setConflict(null)}
        />
      )}
    </div>
  );
}

// A file laid open: the editor, the preview beside it, and what is to be said of both.

import { useEffect, useRef, useState } from "react";
import type { File } from "../../api/files";
import { plain } from "../../components/escape-text";
import { LeaveGuard } from "../../components/unsaved-changes-guard";
import { TextEditor } from "../../editor";
import { FileHead } from "./file-header";
import { Notices } from "./file-notices";
import type { FoundProps } from "./file-pane";
import { Panel } from "./file-panel";
import { ThreeWay } from "./merge-dialog";
import { QuestionDialog } from "./override-dialog";
import { Preview } from "./preview";
import { SaveBar } from "./save-bar";
import { useDraft } from "./use-draft";
import { useSaving } from "./use-save-file";

const KEY = "carrel-preview";

/** Beside the text stands its preview, or a panel where one is asked for. */
function usePreview({ panel, show }: FoundProps["opened"]) {
  const [isWanted, want] = useState(() => localStorage.getItem(KEY) !== "off");
  const isOpen = isWanted && !panel;
  const toggle = () => {
    localStorage.setItem(KEY, isOpen ? "off" : "on");
    want(!isOpen);
    if (panel) show(null);
  };
  return { isOpen, toggle };
}

/** ⌘S saves from wherever the focus is: the browser would save the page instead. */
function useSaveKey(save: () => void) {
  const told = useRef(save);
  told.current = save;
  useEffect(() => {
    const heard = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "s" || !(event.metaKey || event.ctrlKey)) return;
      if (event.shiftKey || event.altKey || event.defaultPrevented) return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) told.current();
    };
    addEventListener("keydown", heard);
    return () => removeEventListener("keydown", heard);
  }, []);
}

export function OpenFile({ file, ...props }: FoundProps & { file: File }) {
  const { place, row, path, gone, canWrite, opened } = props;
  const draft = useDraft(file);
  const saving = useSaving(place, row, draft, gone);
  const preview = usePreview(opened);
  const managed = place.kind === "agent" && row.managed;
  const readOnly = !canWrite || managed;
  useSaveKey(() => readOnly || saving.request());
  return (
    <div className="file">
      <FileHead {...props} base={draft.base} preview={preview} />
      <Notices {...props} {...{ draft, saving, managed }} />
      <div className="file-body">
        <div className="file-text">
          <TextEditor
            text={draft.start.text}
            stamp={draft.start.stamp}
            label={`Text of ${plain(path, 80)}`}
            readOnly={readOnly}
            onEdit={draft.onEdit}
            onSave={saving.request}
          />
        </div>
        {preview.isOpen && <Preview {...{ place, path, draft }} />}
        <Panel {...props} name={opened.panel} file={file} onClose={() => opened.show(null)} />
      </div>
      {!readOnly && <SaveBar {...{ place, path, draft, saving, gone }} />}
      {saving.question && (
        <QuestionDialog
          question={saving.question}
          place={place}
          path={path}
          onYes={() => {
            saving.ask(null);
            saving.attempt();
          }}
          onClose={() => saving.ask(null)}
        />
      )}
      {saving.conflict && (
        <ThreeWay
          conflict={saving.conflict}
          place={place}
          path={path}
          busy={saving.isSaving}
          onSave={saving.attempt}
          onEdit={(text, on) => {
            draft.replace(on ?? draft.base, text);
            saving.setConflict(null);
          }}
          onClose={() => saving.setConflict(null)}
        />
      )}
      <LeaveGuard when={draft.isDirty} path={path} />
    </div>
  );
}

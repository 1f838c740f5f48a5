// Beside the text: its history, or why it is this text and no other.

import { X } from "lucide-react";
import type { File, FileScope } from "../../api/files";
import { Button } from "../../components/button";
import { ExplainPanel } from "./explain-panel";
import { HistoryPanel } from "./history-panel";
import type { PanelName } from "./use-file-url";

interface FilePanelProps {
  name: PanelName | null;
  scope: FileScope;
  path: string;
  /** What is stored now; null where there is no such file. */
  file: File | null;
  canWrite: boolean;
  onClose: () => void;
}

const TITLES = { history: "History", explain: "Where it comes from" };

export function FilePanel({ name, onClose, ...props }: FilePanelProps) {
  if (!name) return null;
  return (
    <aside className="file-panel" aria-label={TITLES[name]}>
      <header className="row">
        <h3 className="grow">{TITLES[name]}</h3>
        <Button small kind="plain" icon={X} aria-label="Close the panel" onClick={onClose} />
      </header>
      {name === "history" ? <HistoryPanel {...props} /> : <ExplainPanel {...props} />}
    </aside>
  );
}

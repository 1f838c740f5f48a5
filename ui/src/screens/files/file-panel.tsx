// Panel beside the editor: history or layers.

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
  /** The stored file; null if it does not exist. */
  file: File | null;
  canWrite: boolean;
  onClose: () => void;
}

const TITLES = { history: "History", explain: "Layers" };

export function FilePanel({ name, onClose, ...props }: FilePanelProps) {
  if (!name) return null;
  return (
    <aside className="file-panel" aria-label={TITLES[name]}>
      <header className="row">
        <h3 className="grow">{TITLES[name]}</h3>
        <Button small kind="plain" icon={X} aria-label="Close panel" onClick={onClose} />
      </header>
      {name === "history" ? <HistoryPanel {...props} /> : <ExplainPanel {...props} />}
    </aside>
  );
}

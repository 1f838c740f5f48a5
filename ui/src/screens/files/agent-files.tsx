// Workspace tab of an agent: its files over those of its template and the defaults.

import { useMemo } from "react";
import { useParams } from "react-router";
import type { FileScope } from "../../api/files";
import { useTitle } from "../../components/screen";
import { FileBrowser } from "./file-browser";

export default function AgentFiles() {
  const { id = "" } = useParams();
  useTitle("Workspace");
  const scope = useMemo<FileScope>(() => ({ kind: "agent", id }), [id]);
  return <FileBrowser scope={scope} pairingUrl={`/agents/${encodeURIComponent(id)}/settings`} />;
}

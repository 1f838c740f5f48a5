// An agent's workspace: its own files over its template's over the defaults.

import { useMemo } from "react";
import { useParams } from "react-router";
import type { Place } from "../../api/files";
import { useTitle } from "../../components/screen";
import { Workspace } from "./file-browser";

export default function AgentWorkspace() {
  const { id = "" } = useParams();
  useTitle("Workspace");
  const place = useMemo<Place>(() => ({ kind: "agent", id }), [id]);
  return <Workspace place={place} humanAddress={`/agents/${encodeURIComponent(id)}/settings`} />;
}

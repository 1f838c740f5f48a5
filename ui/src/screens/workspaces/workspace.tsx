// One shared workspace: files, details and the agents that use it.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { type AgentUse, agentRecordsQuery, workspaceUses } from "../../api/agent-records";
import type { FileScope } from "../../api/files";
import { isAdmin } from "../../api/session";
import {
  deleteWorkspace,
  hasWorkspaceNotes,
  type WorkspaceRecord,
  workspaceQuery,
} from "../../api/workspaces";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { PropertyList } from "../../components/property-list";
import { QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { DeleteWarning, UsedBy } from "../../components/used-by";
import { useSession } from "../../layout/session-context";
import { FileBrowser } from "../files/file-browser";
import { CopyableId } from "../sandboxes/sandbox";
import { WorkspaceForm } from "./workspace-form";

export default function WorkspacePage() {
  const { id = "" } = useParams();
  const [isDeleting, setDeleting] = useState(false);
  const query = useQuery({ ...workspaceQuery(id), enabled: !isDeleting });
  return (
    <QueryResult query={query}>
      {(data) => (
        <WorkspaceDetails workspace={data} isDeleting={isDeleting} onDeleting={setDeleting} />
      )}
    </QueryResult>
  );
}

interface WorkspaceDetailsProps {
  workspace: WorkspaceRecord;
  /** Pauses queries for the workspace while it is being deleted. */
  isDeleting: boolean;
  onDeleting: (isDeleting: boolean) => void;
}

function WorkspaceDetails({ workspace, isDeleting, onDeleting }: WorkspaceDetailsProps) {
  const agents = useQuery(agentRecordsQuery);
  const admin = isAdmin(useSession());
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  const uses = agents.data && workspaceUses(agents.data, workspace.workspaceId);
  const close = () => setOpen(null);
  const scope = useMemo<FileScope>(
    () => ({ kind: "workspace", id: workspace.workspaceId }),
    [workspace.workspaceId],
  );
  return (
    <Screen
      title={escapeText(workspace.name, 120)}
      subtitle={
        <>
          <Link to="/workspaces">Workspaces</Link>
          {workspace.description && (
            <span className="bidi"> · {escapeText(workspace.description, 300)}</span>
          )}
        </>
      }
      actions={
        admin && (
          <>
            <Button icon={Pencil} onClick={() => setOpen("edit")}>
              Edit
            </Button>
            <Button icon={Trash2} kind="danger" onClick={() => setOpen("delete")}>
              Delete
            </Button>
          </>
        )
      }
    >
      {!isDeleting && (
        <FileBrowser
          scope={scope}
          empty={<p>No files yet. Agents and people can add files here.</p>}
        />
      )}
      <div className="cards">
        <RecordCard workspace={workspace} />
        <UsedBy
          uses={uses}
          emptyText="No agent uses this workspace. Attach it in an agent’s settings."
        />
      </div>
      {open === "edit" && <WorkspaceForm workspace={workspace} onClose={close} />}
      {open === "delete" && (
        <DeleteDialog
          workspace={workspace}
          uses={uses ?? []}
          onClose={close}
          onDeleting={onDeleting}
        />
      )}
    </Screen>
  );
}

function RecordCard({ workspace }: { workspace: WorkspaceRecord }) {
  return (
    <section className="card" aria-labelledby="described">
      <header>
        <h2 id="described">Details</h2>
      </header>
      <div className="card-body">
        <PropertyList
          items={[
            ["ID", <CopyableId key="id" id={workspace.workspaceId} />],
            ["Namespace", <code key="namespace">{workspace.namespace}</code>],
            [
              "In prompts",
              hasWorkspaceNotes(workspace) ? "MEMORY.md and workspace notes" : "MEMORY.md only",
            ],
            ["Created", <Time key="created" at={workspace.createdAt} />],
            ["Updated", <Time key="changed" at={workspace.updatedAt} />],
          ]}
        />
      </div>
    </section>
  );
}

interface DeleteDialogProps {
  workspace: WorkspaceRecord;
  uses: AgentUse[];
  onClose: () => void;
  onDeleting: (isDeleting: boolean) => void;
}

function DeleteDialog({ workspace, uses, onClose, onDeleting }: DeleteDialogProps) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => deleteWorkspace(workspace.workspaceId),
    onMutate: () => onDeleting(true),
    onError: () => onDeleting(false),
    onSuccess: async () => {
      await navigate("/workspaces");
      void queries.invalidateQueries({ queryKey: ["workspaces"], exact: true });
      toast("Workspace deleted");
    },
  });
  return (
    <Confirm
      title="Delete workspace?"
      action="Delete"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{escapeText(workspace.name, 80)}</strong> and all of its files will be deleted.
        Snapshots of runs stay.
      </p>
      <DeleteWarning uses={uses} />
    </Confirm>
  );
}

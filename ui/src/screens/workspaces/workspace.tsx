// One shared workspace: its record, who works in it, and its files.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { agentRecordsQuery, type Use, usersOfWorkspace } from "../../api/agent-records";
import type { Place } from "../../api/files";
import { isAdmin } from "../../api/session";
import {
  deleteWorkspace,
  isExplained,
  type WorkspaceRecord,
  workspaceQuery,
} from "../../api/workspaces";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Facts } from "../../components/property-list";
import { Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { Missed, UsedBy } from "../../components/used-by";
import { useSession } from "../../layout/session-context";
import { Workspace } from "../files/file-browser";
import { Id } from "../sandboxes/sandbox";
import { WorkspaceForm } from "./workspace-form";

export default function WorkspacePage() {
  const { id = "" } = useParams();
  const [isGoing, setGoing] = useState(false);
  const found = useQuery({ ...workspaceQuery(id), enabled: !isGoing });
  return (
    <Shown query={found}>
      {(data) => <Page workspace={data} isGoing={isGoing} onGoing={setGoing} />}
    </Shown>
  );
}

interface PageProps {
  workspace: WorkspaceRecord;
  /** It is being deleted: nothing more is asked about it. */
  isGoing: boolean;
  onGoing: (isGoing: boolean) => void;
}

function Page({ workspace, isGoing, onGoing }: PageProps) {
  const agents = useQuery(agentRecordsQuery);
  const able = isAdmin(useSession());
  const [open, setOpen] = useState<"edit" | "delete" | null>(null);
  const uses = agents.data && usersOfWorkspace(agents.data, workspace.workspaceId);
  const close = () => setOpen(null);
  const place = useMemo<Place>(
    () => ({ kind: "workspace", id: workspace.workspaceId }),
    [workspace.workspaceId],
  );
  return (
    <Screen
      title={plain(workspace.name, 120)}
      under={
        <>
          <Link to="/workspaces">Workspaces</Link>
          {workspace.description && (
            <span className="bidi"> · {plain(workspace.description, 300)}</span>
          )}
        </>
      }
      actions={
        able && (
          <>
            <Button icon={Pencil} onClick={() => setOpen("edit")}>
              Change
            </Button>
            <Button icon={Trash2} kind="danger" onClick={() => setOpen("delete")}>
              Delete
            </Button>
          </>
        )
      }
    >
      {!isGoing && (
        <Workspace
          place={place}
          empty={<p>What agents write here appears by itself, and you can put files here too.</p>}
        />
      )}
      <div className="cards">
        <Described workspace={workspace} />
        <UsedBy
          uses={uses}
          teach="No agent has it attached yet. Name it in an agent’s settings; with no sandbox there it is read-only."
        />
      </div>
      {open === "edit" && <WorkspaceForm workspace={workspace} onClose={close} />}
      {open === "delete" && (
        <Deleting workspace={workspace} uses={uses ?? []} onClose={close} onGoing={onGoing} />
      )}
    </Screen>
  );
}

function Described({ workspace }: { workspace: WorkspaceRecord }) {
  return (
    <section className="card" aria-labelledby="described">
      <header>
        <h2 id="described">What it is</h2>
      </header>
      <div className="inside">
        <Facts
          of={[
            ["Id", <Id key="id" id={workspace.workspaceId} />],
            ["Namespace", <code key="namespace">{workspace.namespace}</code>],
            [
              "In prompts",
              isExplained(workspace)
                ? "MEMORY.md of it, and how to use it"
                : "MEMORY.md of it, without how to use it",
            ],
            ["Created", <Time key="created" at={workspace.createdAt} />],
            ["Changed", <Time key="changed" at={workspace.updatedAt} />],
          ]}
        />
      </div>
    </section>
  );
}

interface DeletingProps {
  workspace: WorkspaceRecord;
  uses: Use[];
  onClose: () => void;
  onGoing: (isGoing: boolean) => void;
}

function Deleting({ workspace, uses, onClose, onGoing }: DeletingProps) {
  const queries = useQueryClient();
  const go = useNavigate();
  const gone = useMutation({
    mutationFn: () => deleteWorkspace(workspace.workspaceId),
    onMutate: () => onGoing(true),
    onError: () => onGoing(false),
    onSuccess: async () => {
      await go("/workspaces");
      void queries.invalidateQueries({ queryKey: ["workspaces"], exact: true });
      toast("The workspace is deleted.");
    },
  });
  return (
    <Confirm
      title="Delete the workspace and its files?"
      action="Delete"
      danger
      busy={gone.isPending}
      onConfirm={() => gone.mutate()}
      onClose={onClose}
    >
      <p className="bidi">
        <strong>{plain(workspace.name, 80)}</strong> and all files in it will be gone. Runs that
        froze them still show them.
      </p>
      <Missed uses={uses} what="it" />
    </Confirm>
  );
}

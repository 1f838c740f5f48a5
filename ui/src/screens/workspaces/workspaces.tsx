// Files that agents share: every workspace of the account.

import { useQuery } from "@tanstack/react-query";
import { FolderOpen, Plus } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { agentRecordsQuery, usersOfWorkspace } from "../../api/agent-records";
import { isAdmin } from "../../api/session";
import { type WorkspaceRecord, workspacesQuery } from "../../api/workspaces";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { Empty, Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { WorkspaceForm } from "./workspace-form";

export default function Workspaces() {
  const workspaces = useQuery(workspacesQuery);
  const [making, setMaking] = useState(false);
  const go = useNavigate();
  const able = isAdmin(useSession());
  return (
    <Screen
      title="Workspaces"
      under="Files that agents work on together, attached to each by its settings."
      actions={
        <Button
          kind="primary"
          icon={Plus}
          disabled={!able}
          title={able ? undefined : "Only owners and admins make workspaces."}
          onClick={() => setMaking(true)}
        >
          New workspace
        </Button>
      }
    >
      <Shown query={workspaces}>
        {(found) => (found.length ? <Table workspaces={found} /> : <None able={able} />)}
      </Shown>
      {making && (
        <WorkspaceForm
          onClose={() => setMaking(false)}
          onSaved={({ workspaceId }) => void go(`/workspaces/${workspaceId}`)}
        />
      )}
    </Screen>
  );
}

function None({ able }: { able: boolean }) {
  return (
    <Empty icon={FolderOpen} title="No workspace yet">
      <p>
        An agent’s own files say who it is; what it works on with others is in a workspace.{" "}
        {able ? "Make one here" : "An admin makes one here"}, or with{" "}
        <code>carrel workspaces add</code>, and attach it in an agent’s settings, with a sandbox or
        read-only.
      </p>
    </Empty>
  );
}

function Table({ workspaces }: { workspaces: WorkspaceRecord[] }) {
  const agents = useQuery(agentRecordsQuery);
  const users = (id: string) =>
    agents.data
      ? new Set(usersOfWorkspace(agents.data, id).map(({ agent }) => agent.id)).size
      : "…";
  return (
    <div className="table-wrap">
      <table className="table">
        <thead>
          <tr>
            <th>Name</th>
            <th className="only-large">Id</th>
            <th className="number">Agents</th>
            <th>Changed</th>
          </tr>
        </thead>
        <tbody>
          {workspaces.map(({ workspaceId, name, description, updatedAt }) => (
            <tr key={workspaceId}>
              <td className="named">
                <Link className="bidi cut" to={`/workspaces/${workspaceId}`}>
                  {plain(name, 80)}
                </Link>
                {description && <div className="faint bidi cut">{plain(description, 160)}</div>}
              </td>
              <td className="only-large">
                <code className="faint">{workspaceId}</code>
              </td>
              <td className="number">{users(workspaceId)}</td>
              <td>
                <Time at={updatedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

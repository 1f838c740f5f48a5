// List of shared workspaces.

import { useQuery } from "@tanstack/react-query";
import { FolderOpen, Plus } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { agentRecordsQuery, workspaceUses } from "../../api/agent-records";
import { isAdmin } from "../../api/session";
import { type WorkspaceRecord, workspacesQuery } from "../../api/workspaces";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { WorkspaceForm } from "./workspace-form";

export default function Workspaces() {
  const workspaces = useQuery(workspacesQuery);
  const [isCreating, setCreating] = useState(false);
  const navigate = useNavigate();
  const admin = isAdmin(useSession());
  return (
    <Screen
      title="Workspaces"
      subtitle="Shared files of several agents, attached in the agents’ settings."
      actions={
        <Button
          kind="primary"
          icon={Plus}
          disabled={!admin}
          title={admin ? undefined : "Only owners and admins can create workspaces."}
          onClick={() => setCreating(true)}
        >
          New workspace
        </Button>
      }
    >
      <QueryResult query={workspaces}>
        {(rows) => (rows.length ? <Table workspaces={rows} /> : <NoWorkspaces admin={admin} />)}
      </QueryResult>
      {isCreating && (
        <WorkspaceForm
          onClose={() => setCreating(false)}
          onSaved={({ workspaceId }) => void navigate(`/workspaces/${workspaceId}`)}
        />
      )}
    </Screen>
  );
}

function NoWorkspaces({ admin }: { admin: boolean }) {
  return (
    <EmptyState icon={FolderOpen} title="No workspaces yet">
      <p>
        A workspace contains files that several agents work on.{" "}
        {admin ? "Create one here" : "An admin can create one here"} or with{" "}
        <code>carrel workspaces add</code>, then attach it in an agent’s settings.
      </p>
    </EmptyState>
  );
}

function Table({ workspaces }: { workspaces: WorkspaceRecord[] }) {
  const agents = useQuery(agentRecordsQuery);
  const agentCount = (id: string) =>
    agents.data ? new Set(workspaceUses(agents.data, id).map(({ agent }) => agent.id)).size : "…";
  return (
    <div className="table-wrap">
      <table className="table">
        <thead>
          <tr>
            <th>Name</th>
            <th className="only-large">ID</th>
            <th className="number">Agents</th>
            <th>Updated</th>
          </tr>
        </thead>
        <tbody>
          {workspaces.map(({ workspaceId, name, description, updatedAt }) => (
            <tr key={workspaceId}>
              <td className="name-cell">
                <Link className="bidi truncate" to={`/workspaces/${workspaceId}`}>
                  {escapeText(name, 80)}
                </Link>
                {description && (
                  <div className="faint bidi truncate">{escapeText(description, 160)}</div>
                )}
              </td>
              <td className="only-large">
                <code className="faint">{workspaceId}</code>
              </td>
              <td className="number">{agentCount(workspaceId)}</td>
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

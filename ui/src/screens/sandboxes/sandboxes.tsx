// List of sandboxes.

import { useQuery } from "@tanstack/react-query";
import { Box, Plus } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { agentRecordsQuery, sandboxUses } from "../../api/agent-records";
import { hasNetworkAccess, type Sandbox, sandboxesQuery } from "../../api/sandboxes";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { PERMISSION_MODES, SandboxForm } from "./sandbox-form";

export default function Sandboxes() {
  const sandboxes = useQuery(sandboxesQuery);
  const [isCreating, setCreating] = useState(false);
  const navigate = useNavigate();
  const admin = isAdmin(useSession());
  return (
    <Screen
      title="Sandboxes"
      subtitle="Where agents run commands: provider, limits and required approvals."
      actions={
        <Button
          kind="primary"
          icon={Plus}
          disabled={!admin}
          title={admin ? undefined : "Only owners and admins can create sandboxes."}
          onClick={() => setCreating(true)}
        >
          New sandbox
        </Button>
      }
    >
      <QueryResult query={sandboxes}>
        {(rows) => (rows.length ? <Table sandboxes={rows} /> : <NoSandboxes admin={admin} />)}
      </QueryResult>
      {isCreating && (
        <SandboxForm
          onClose={() => setCreating(false)}
          onSaved={({ sandboxId }) => void navigate(`/sandboxes/${sandboxId}`)}
        />
      )}
    </Screen>
  );
}

function NoSandboxes({ admin }: { admin: boolean }) {
  return (
    <EmptyState icon={Box} title="No sandboxes yet">
      <p>
        A sandbox defines where an agent’s <code>bash</code> runs, its limits and required
        approvals. {admin ? "Create one here" : "An admin can create one here"} or with{" "}
        <code>carrel sandboxes add</code>, then select it in an agent’s settings.
      </p>
    </EmptyState>
  );
}

function Table({ sandboxes }: { sandboxes: Sandbox[] }) {
  const agents = useQuery(agentRecordsQuery);
  return (
    <div className="table-wrap">
      <table className="table">
        <thead>
          <tr>
            <th>Name</th>
            <th className="only-large">Provider</th>
            <th>Approval required for</th>
            <th className="only-large">Network</th>
            <th className="number">Agents</th>
            <th className="only-large">Updated</th>
          </tr>
        </thead>
        <tbody>
          {sandboxes.map((sandbox) => (
            <tr key={sandbox.sandboxId}>
              <td className="name-cell">
                <Link className="bidi truncate" to={`/sandboxes/${sandbox.sandboxId}`}>
                  {escapeText(sandbox.name, 80)}
                </Link>
                {sandbox.description && (
                  <div className="faint bidi truncate">{escapeText(sandbox.description, 120)}</div>
                )}
              </td>
              <td className="only-large">
                <code>{sandbox.config.provider}</code>
              </td>
              <td>{PERMISSION_MODES[sandbox.config.permissionMode]}</td>
              <td className="only-large">
                {hasNetworkAccess(sandbox.config) ? "Allowed" : "None"}
              </td>
              <td className="number">
                {agents.data ? sandboxUses(agents.data, sandbox.sandboxId).length : "…"}
              </td>
              <td className="only-large">
                <Time at={sandbox.updatedAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

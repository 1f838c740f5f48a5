// Where commands of agents run: every sandbox that the account has described.

import { useQuery } from "@tanstack/react-query";
import { Box, Plus } from "lucide-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { agentRecordsQuery, usersOfSandbox } from "../../api/agent-records";
import { reachesNetwork, type Sandbox, sandboxesQuery } from "../../api/sandboxes";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";
import { Empty, Shown } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { Time } from "../../components/time";
import { useSession } from "../../layout/session-context";
import { MODES, SandboxForm } from "./sandbox-form";

export default function Sandboxes() {
  const sandboxes = useQuery(sandboxesQuery);
  const [making, setMaking] = useState(false);
  const go = useNavigate();
  const able = isAdmin(useSession());
  return (
    <Screen
      title="Sandboxes"
      under="Where commands of agents run, what bounds them, and before what a person is asked."
      actions={
        <Button
          kind="primary"
          icon={Plus}
          disabled={!able}
          title={able ? undefined : "Only owners and admins describe sandboxes."}
          onClick={() => setMaking(true)}
        >
          New sandbox
        </Button>
      }
    >
      <Shown query={sandboxes}>
        {(found) => (found.length ? <Table sandboxes={found} /> : <None able={able} />)}
      </Shown>
      {making && (
        <SandboxForm
          onClose={() => setMaking(false)}
          onSaved={({ sandboxId }) => void go(`/sandboxes/${sandboxId}`)}
        />
      )}
    </Screen>
  );
}

function None({ able }: { able: boolean }) {
  return (
    <Empty icon={Box} title="No sandbox yet">
      <p>
        A sandbox says where an agent’s <code>bash</code> runs, with how much memory and time, and
        who is asked before it does. {able ? "Describe one here" : "An admin describes one here"},
        or with <code>carrel sandboxes add</code>, and name it in an agent’s settings.
      </p>
    </Empty>
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
            <th>A person is asked</th>
            <th className="only-large">Network</th>
            <th className="number">Agents</th>
            <th className="only-large">Changed</th>
          </tr>
        </thead>
        <tbody>
          {sandboxes.map((sandbox) => (
            <tr key={sandbox.sandboxId}>
              <td className="named">
                <Link className="bidi cut" to={`/sandboxes/${sandbox.sandboxId}`}>
                  {plain(sandbox.name, 80)}
                </Link>
                {sandbox.description && (
                  <div className="faint bidi cut">{plain(sandbox.description, 120)}</div>
                )}
              </td>
              <td className="only-large">
                <code>{sandbox.config.provider}</code>
              </td>
              <td>{MODES[sandbox.config.permissionMode]}</td>
              <td className="only-large">{reachesNetwork(sandbox.config) ? "Yes" : "None"}</td>
              <td className="number">
                {agents.data ? usersOfSandbox(agents.data, sandbox.sandboxId).length : "…"}
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

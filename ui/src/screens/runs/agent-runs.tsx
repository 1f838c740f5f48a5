// Runs tab of an agent.

import { Play } from "lucide-react";
import { useState } from "react";
import { hasPermission } from "../../api/session";
import { Button } from "../../components/button";
import { useTitle } from "../../components/screen";
import { useSession } from "../../layout/session-context";
import { useAgent } from "../agents/agent-context";
import { RunList } from "./run-list";
import { StartRun } from "./start-run";

export default function AgentRunsScreen() {
  const { id } = useAgent();
  const [isStarting, setStarting] = useState(false);
  const session = useSession();
  useTitle("Runs");
  return (
    <section className="stack" aria-labelledby="runs-heading">
      <div className="row wrap">
        <h2 id="runs-heading" className="grow">
          Runs
        </h2>
        {hasPermission(session, "runs:write") && (
          <Button icon={Play} onClick={() => setStarting(true)}>
            Start run
          </Button>
        )}
      </div>
      <RunList agentId={id} showAgent={false} />
      {isStarting && <StartRun agentId={id} onClose={() => setStarting(false)} />}
    </section>
  );
}

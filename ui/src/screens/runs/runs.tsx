// Runs of the tenant.

import { useSearchParams } from "react-router";
import { Screen } from "../../components/screen";
import { AgentFilter } from "./agent-filter";
import { RunList } from "./run-list";

export default function RunsScreen() {
  const [params] = useSearchParams();
  return (
    <Screen title="Runs" subtitle="Executions of agents, each with a snapshot of its files.">
      <RunList agentId={params.get("agent") ?? undefined} showAgent>
        <AgentFilter />
      </RunList>
    </Screen>
  );
}

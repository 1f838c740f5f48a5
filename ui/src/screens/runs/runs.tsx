// All runs of the tenant.

import { useSearchParams } from "react-router";
import { Screen } from "../../components/screen";
import { AgentFilter } from "./agent-filter";
import { RunList } from "./run-list";

export default function RunsScreen() {
  const [params] = useSearchParams();
  return (
    <Screen title="Runs" subtitle="Each is one piece of an agent's work, over files frozen for it.">
      <RunList agentId={params.get("agent") ?? undefined} showAgent>
        <AgentFilter />
      </RunList>
    </Screen>
  );
}

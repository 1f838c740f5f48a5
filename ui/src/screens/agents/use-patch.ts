import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Agent, type AgentPatch, patchAgent } from "../../api/agents";
import { toast } from "../../components/toast";

const TOUCHED = ["agent", "agents", "files", "pins", "prompt", "inbox", "templates"];

/** Changes an agent and lets all that follows from it be asked for again. */
export function usePatch(agent: Agent, said: string, done: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (patch: AgentPatch) => patchAgent(agent.id, patch),
    meta: { quiet: true },
    onSuccess: (fresh) => {
      queries.setQueryData(["agent", agent.id], fresh);
      for (const key of TOUCHED) void queries.invalidateQueries({ queryKey: [key] });
      toast(said);
      done();
    },
  });
}

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "react-router";
import { type Agent, type AgentPatch, patchAgent } from "../../api/agents";
import { toast } from "../../parts/toast";

const TOUCHED = ["agent", "agents", "files", "pins", "prompt", "inbox", "templates"];

/** Changes an agent and lets all that follows from it be asked for again. */
export function usePatch(agent: Agent, said: string, done: () => void) {
  const queries = useQueryClient();
  const go = useNavigate();
  const { id: named } = useParams();
  return useMutation({
    mutationFn: (patch: AgentPatch) => patchAgent(agent.id, patch),
    meta: { quiet: true },
    onSuccess: async (fresh) => {
      queries.setQueryData(["agent", agent.id], fresh);
      if (named === agent.slug && fresh.slug !== agent.slug) {
        await go(`/agents/${agent.id}/settings`, { replace: true });
      }
      for (const key of TOUCHED) void queries.invalidateQueries({ queryKey: [key] });
      toast(said);
      done();
    },
  });
}

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Agent, type AgentPatch, patchAgent } from "../../api/agents";
import { toast } from "../../components/toast";

const AFFECTED_QUERIES = ["agent", "agents", "files", "pins", "prompt", "inbox", "templates"];

/** Patches an agent and invalidates the affected queries. */
export function usePatchAgent(agent: Agent, successText: string, onDone: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (patch: AgentPatch) => patchAgent(agent.id, patch),
    meta: { skipErrorToast: true },
    onSuccess: (updated) => {
      queries.setQueryData(["agent", agent.id], updated);
      for (const key of AFFECTED_QUERIES) void queries.invalidateQueries({ queryKey: [key] });
      toast(successText);
      onDone();
    },
  });
}

import { useQuery } from "@tanstack/react-query";
import { agentRecordQuery, isAgentOf } from "../../api/agent-records";
import { isAdmin } from "../../api/session";
import { useSession } from "../../layout/session-context";

/** Why the user may not change an agent's memory; undefined if allowed. */
export function useDisabledReason(agentId: string): string | undefined {
  const session = useSession();
  const agent = useQuery(agentRecordQuery(agentId));
  if (isAdmin(session) || isAgentOf(agent.data, session.person?.id)) return undefined;
  return "Only owners, admins and the agent’s human or owner can change memories.";
}

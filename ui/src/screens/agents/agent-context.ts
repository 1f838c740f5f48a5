import { useOutletContext } from "react-router";
import type { Agent } from "../../api/agents";

/** The agent of the surrounding AgentLayout. */
export const useAgent = (): Agent => useOutletContext<Agent>();

import { useOutletContext } from "react-router";
import type { Agent } from "../../api/agents";

/** The agent in whose frame a screen stands. */
export const useAgent = (): Agent => useOutletContext<Agent>();

import { isAdmin } from "../../api/session";
import { useSession } from "../../layout/session-context";

/** Why the user may not change an agent's memory; undefined if allowed. */
export function useDisabledReason(): string | undefined {
  return isAdmin(useSession()) ? undefined : "Only owners and admins can change memories.";
}

import { isAdmin } from "../../api/session";
import { useSession } from "../../layout/session-context";

/** Why somebody may not change what an agent remembers; undefined for whoever may. */
export function useDisabledReason(): string | undefined {
  return isAdmin(useSession()) ? undefined : "Only owners and admins change what agents remember.";
}

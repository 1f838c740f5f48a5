import { createContext, useContext } from "react";
import type { Session } from "../api/session";

export const SessionContext = createContext<Session | null>(null);

/** The signed-in session; only available inside ConsoleLayout. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("useSession needs a signed-in session");
  return session;
}

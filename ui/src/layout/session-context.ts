import { createContext, useContext } from "react";
import type { Session } from "../api/session";

export const SessionContext = createContext<Session | null>(null);

/** Who is at the desk; only screens inside the frame ask. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("nobody is signed in here");
  return session;
}

// The frame around every screen: where one is, where one can go, who one is.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import {
  Bot,
  Box,
  FolderOpen,
  Inbox,
  LayoutTemplate,
  type LucideIcon,
  Menu,
  Package,
  Play,
  Search,
  Settings,
  ShieldCheck,
} from "lucide-react";
import { Suspense, useEffect, useState, useSyncExternalStore } from "react";
import { Navigate, NavLink, Outlet, useLocation } from "react-router";
import { inboxQuery } from "../api/inbox";
import { Problem } from "../api/problem";
import { type Session, sessionQuery } from "../api/session";
import { Button } from "../components/button";
import { plain } from "../components/escape-text";
import { Loading, Refused } from "../components/query-states";
import { Toasts } from "../components/toast";
import { hasDrafts } from "../components/unsaved-drafts";
import { goLive, liveStanding } from "../events/event-stream";
import { Palette, usePalette } from "./palette";
import { SessionContext } from "./session-context";
import { SignInAgain } from "./session-expired-dialog";
import { PersonMenu } from "./user-menu";

const PLACES: { to: string; name: string; icon: LucideIcon; count?: "waiting" | "approvals" }[] = [
  { to: "/inbox", name: "Inbox", icon: Inbox, count: "waiting" },
  { to: "/agents", name: "Agents", icon: Bot },
  { to: "/agent-templates", name: "Templates", icon: LayoutTemplate },
  { to: "/runs", name: "Runs", icon: Play },
  { to: "/approvals", name: "Approvals", icon: ShieldCheck, count: "approvals" },
  { to: "/workspaces", name: "Workspaces", icon: FolderOpen },
  { to: "/sandboxes", name: "Sandboxes", icon: Box },
  { to: "/items", name: "Items", icon: Package },
  { to: "/settings", name: "Settings", icon: Settings },
];

/** Asks who is there first; whoever is nobody is shown the door with the way back on it. */
export function Frame() {
  const session = useQuery(sessionQuery);
  const { pathname, search } = useLocation();
  const isOut = session.error instanceof Problem && session.error.status === 401;
  // A draft outlives its session: whoever has one signs in over it, and goes on.
  if (isOut && !(session.data && hasDrafts())) {
    return <Navigate to={`/sign-in?return=${encodeURIComponent(pathname + search)}`} replace />;
  }
  if (session.data) {
    return (
      <>
        <Desk session={session.data} />
        {isOut && <SignInAgain times={session.errorUpdateCount} />}
      </>
    );
  }
  if (session.isError)
    return <Refused error={session.error} again={() => void session.refetch()} />;
  return <Loading />;
}

function Desk({ session }: { session: Session }) {
  const queries = useQueryClient();
  const palette = usePalette();
  const { pathname } = useLocation();
  const [open, setOpen] = useState(false);
  useEffect(() => goLive(queries), [queries]);
  useEffect(() => {
    const out = () => void queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
    addEventListener("carrel:signed-out", out);
    return () => removeEventListener("carrel:signed-out", out);
  }, [queries]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another address closes the drawer
  useEffect(() => setOpen(false), [pathname]);
  return (
    <SessionContext value={session}>
      <div className="frame">
        <a className="visually-hidden" href="#main">
          To the content
        </a>
        <header className="frame-bar">
          <Button
            kind="plain"
            icon={Menu}
            className="only-small"
            aria-label="Menu"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
          />
          <NavLink to="/agents" className="brand">
            <img src="/icon.svg" alt="" />
            Carrel
          </NavLink>
          <span className="soft cut bidi only-large">{plain(session.tenant.name, 60)}</span>
          <span className="grow" />
          <Button
            className="palette-open"
            icon={Search}
            aria-label="Find anything ⌘K"
            onClick={palette.show}
          >
            <span className="only-large grow">Find anything</span>
            <kbd className="only-large">⌘K</kbd>
          </Button>
          <Live />
          <PersonMenu />
        </header>
        <Side open={open} />
        <main id="main" className="frame-main" tabIndex={-1}>
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      {palette.open && <Palette onClose={palette.hide} />}
      <Toasts />
    </SessionContext>
  );
}

function Side({ open }: { open: boolean }) {
  const { data } = useQuery(inboxQuery(false));
  const counts = {
    waiting: data ? data.counts.pins + data.counts.dreams + data.counts.approvals : 0,
    approvals: data?.counts.approvals ?? 0,
  };
  return (
    <nav className={open ? "frame-side open" : "frame-side"} aria-label="Screens">
      {PLACES.map(({ to, name, icon: Icon, count }) => (
        <NavLink key={to} to={to} className={({ isActive }) => (isActive ? "on" : "")}>
          <Icon size={16} aria-hidden />
          {name}
          {count && counts[count] > 0 && (
            <span className="badge update count">{counts[count]}</span>
          )}
        </NavLink>
      ))}
    </nav>
  );
}

const SAID = {
  connecting: "Connecting",
  live: "Live: changes appear by themselves",
  lost: "Not connected; trying again",
};

function Live() {
  const standing = useSyncExternalStore(liveStanding.subscribe, liveStanding.now);
  return (
    <span
      className={`live-dot ${standing}`}
      role="img"
      aria-label={SAID[standing]}
      title={SAID[standing]}
    />
  );
}

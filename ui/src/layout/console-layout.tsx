// Layout of every screen: top bar, navigation and content.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import {
  Bot,
  Box,
  FolderOpen,
  Inbox,
  LayoutDashboard,
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
import { escapeText } from "../components/escape-text";
import { ErrorNotice, Loading } from "../components/query-states";
import { Toasts } from "../components/toast";
import { UnsavedChangesGuard } from "../components/unsaved-changes-guard";
import { hasDrafts } from "../components/unsaved-drafts";
import { connectionStore, startEventStream } from "../events/event-stream";
import { Palette, usePalette } from "./palette";
import { SessionContext } from "./session-context";
import { SessionExpiredDialog } from "./session-expired-dialog";
import { Shortcuts, useShortcuts } from "./shortcuts";
import { UserMenu } from "./user-menu";

const NAV_ITEMS: { to: string; name: string; icon: LucideIcon; count?: "waiting" | "approvals" }[] =
  [
    { to: "/overview", name: "Overview", icon: LayoutDashboard },
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

/** Loads the session first; redirects to sign-in if there is none. */
export function ConsoleLayout() {
  const session = useQuery(sessionQuery);
  const { pathname, search } = useLocation();
  const isSignedOut = session.error instanceof Problem && session.error.status === 401;
  // With unsaved drafts the page stays, and a dialog asks to sign in again.
  if (isSignedOut && !(session.data && hasDrafts())) {
    return <Navigate to={`/sign-in?return=${encodeURIComponent(pathname + search)}`} replace />;
  }
  if (session.data) {
    return (
      <>
        <SignedInLayout session={session.data} />
        {isSignedOut && <SessionExpiredDialog refusalCount={session.errorUpdateCount} />}
      </>
    );
  }
  if (session.isError)
    return <ErrorNotice error={session.error} onRetry={() => void session.refetch()} />;
  return <Loading />;
}

function SignedInLayout({ session }: { session: Session }) {
  const queries = useQueryClient();
  const palette = usePalette();
  const shortcuts = useShortcuts();
  const { pathname } = useLocation();
  const [open, setOpen] = useState(false);
  useEffect(() => startEventStream(queries), [queries]);
  useEffect(() => {
    const refetchSession = () =>
      void queries.invalidateQueries({ queryKey: sessionQuery.queryKey });
    addEventListener("carrel:signed-out", refetchSession);
    return () => removeEventListener("carrel:signed-out", refetchSession);
  }, [queries]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigation closes the menu
  useEffect(() => setOpen(false), [pathname]);
  return (
    <SessionContext value={session}>
      <div className="layout">
        <a className="visually-hidden" href="#main">
          Skip to content
        </a>
        <header className="top-bar">
          <Button
            kind="plain"
            icon={Menu}
            className="only-small"
            aria-label="Menu"
            aria-expanded={open}
            onClick={() => setOpen(!open)}
          />
          <NavLink to="/overview" className="brand">
            <img src="/icon.svg" alt="" />
            Carrel
          </NavLink>
          <span className="soft truncate bidi only-large">
            {escapeText(session.tenant.name, 60)}
          </span>
          <span className="grow" />
          <Button
            className="palette-open"
            icon={Search}
            aria-label="Search ⌘K"
            onClick={palette.show}
          >
            <span className="only-large grow">Search</span>
            <kbd className="only-large">⌘K</kbd>
          </Button>
          <ConnectionIndicator />
          <UserMenu />
        </header>
        <SideNav open={open} />
        <main id="main" className="layout-main" tabIndex={-1}>
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </main>
        <Toasts />
      </div>
      {palette.open && <Palette onClose={palette.hide} />}
      {shortcuts.open && <Shortcuts onClose={shortcuts.hide} />}
      <UnsavedChangesGuard />
    </SessionContext>
  );
}

function SideNav({ open }: { open: boolean }) {
  const { data } = useQuery(inboxQuery(false));
  const counts = {
    waiting: data ? data.counts.pins + data.counts.dreams + data.counts.approvals : 0,
    approvals: data?.counts.approvals ?? 0,
  };
  return (
    <nav className={open ? "side-nav open" : "side-nav"} aria-label="Main">
      {NAV_ITEMS.map(({ to, name, icon: Icon, count }) => (
        <NavLink key={to} to={to} className={({ isActive }) => (isActive ? "active" : "")}>
          <Icon size={16} aria-hidden />
          {name}
          {count && counts[count] > 0 && (
            <span className="badge update count">{counts[count].toLocaleString("en")}</span>
          )}
        </NavLink>
      ))}
    </nav>
  );
}

const CONNECTION_LABELS = {
  connecting: "Connecting",
  live: "Connected",
  lost: "Disconnected, reconnecting",
};

function ConnectionIndicator() {
  const state = useSyncExternalStore(connectionStore.subscribe, connectionStore.now);
  return (
    <span
      className={`live-dot ${state}`}
      role="img"
      aria-label={CONNECTION_LABELS[state]}
      title={CONNECTION_LABELS[state]}
    />
  );
}

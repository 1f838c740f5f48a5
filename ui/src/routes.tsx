// Every screen has an address. Each is loaded when it is first visited.

import { createBrowserRouter, Navigate, type RouteObject } from "react-router";
import { Problem } from "./api/problem";
import { Loading } from "./components/query-states";
import { Frame } from "./layout/console-layout";
import { Missing } from "./layout/error-page";

type Loaded = { default: React.ComponentType };
const UNLOADED =
  "This screen could not be loaded: the server cannot be reached, or it has been updated since you opened the desk.";

const screen = (load: () => Promise<Loaded>) => async () => {
  const { default: Component } = await load().catch(() => {
    throw new Problem(0, { message: UNLOADED });
  });
  return { Component };
};

const agent: RouteObject = {
  path: "agents/:id",
  lazy: screen(() => import("./screens/agents/agent")),
  children: [
    { index: true, element: <Navigate to="workspace" replace /> },
    { path: "workspace", lazy: screen(() => import("./screens/files/agent-files")) },
    { path: "prompt", lazy: screen(() => import("./screens/prompt/prompt")) },
    { path: "runs", lazy: screen(() => import("./screens/runs/agent-runs")) },
    { path: "sessions", lazy: screen(() => import("./screens/sessions/sessions")) },
    { path: "sessions/:sid", lazy: screen(() => import("./screens/sessions/session")) },
    { path: "memory", lazy: screen(() => import("./screens/memory/memory")) },
    { path: "items", lazy: screen(() => import("./screens/items/agent-items")) },
    { path: "settings", lazy: screen(() => import("./screens/agents/agent-settings")) },
  ],
};

const templates: RouteObject[] = [
  { path: "agent-templates", lazy: screen(() => import("./screens/templates/templates")) },
  { path: "agent-templates/defaults", lazy: screen(() => import("./screens/templates/defaults")) },
  {
    path: "agent-templates/:templateId",
    lazy: screen(() => import("./screens/templates/template")),
  },
  {
    path: "agent-templates/:templateId/review",
    lazy: screen(() => import("./screens/review/bulk-review")),
  },
];

const settings: RouteObject = {
  path: "settings",
  lazy: screen(() => import("./screens/settings/settings")),
  children: [
    { index: true, element: <Navigate to="people" replace /> },
    { path: "people", lazy: screen(() => import("./screens/settings/people")) },
    { path: "keys", lazy: screen(() => import("./screens/settings/keys")) },
    { path: "policy", lazy: screen(() => import("./screens/settings/policy")) },
    { path: "secrets", lazy: screen(() => import("./screens/settings/secrets")) },
    { path: "webhooks", lazy: screen(() => import("./screens/settings/webhooks")) },
    { path: "webhooks/:id", lazy: screen(() => import("./screens/settings/webhook")) },
    { path: "audit", lazy: screen(() => import("./screens/settings/audit")) },
  ],
};

export const router = createBrowserRouter([
  {
    path: "sign-in",
    lazy: screen(() => import("./screens/sign-in/sign-in")),
    errorElement: <Missing />,
    HydrateFallback: Loading,
  },
  {
    HydrateFallback: Loading,
    element: <Frame />,
    errorElement: <Missing />,
    children: [
      {
        // What breaks in a screen leaves the frame around it standing.
        errorElement: <Missing />,
        children: [
          { index: true, element: <Navigate to="/agents" replace /> },
          { path: "inbox", lazy: screen(() => import("./screens/review/inbox")) },
          { path: "agents", lazy: screen(() => import("./screens/agents/agents")) },
          agent,
          ...templates,
          { path: "runs", lazy: screen(() => import("./screens/runs/runs")) },
          { path: "runs/:id", lazy: screen(() => import("./screens/runs/run")) },
          { path: "approvals", lazy: screen(() => import("./screens/approvals/approvals")) },
          { path: "approvals/:id", lazy: screen(() => import("./screens/approvals/approvals")) },
          { path: "workspaces", lazy: screen(() => import("./screens/workspaces/workspaces")) },
          { path: "workspaces/:id", lazy: screen(() => import("./screens/workspaces/workspace")) },
          { path: "sandboxes", lazy: screen(() => import("./screens/sandboxes/sandboxes")) },
          { path: "sandboxes/:id", lazy: screen(() => import("./screens/sandboxes/sandbox")) },
          { path: "items", lazy: screen(() => import("./screens/items/items")) },
          settings,
          { path: "search", lazy: screen(() => import("./screens/search/search")) },
          { path: "*", element: <Missing /> },
        ],
      },
    ],
  },
]);

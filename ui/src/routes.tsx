// Routes. Each screen is loaded on its first visit.

import { createBrowserRouter, Navigate, type RouteObject } from "react-router";
import { Problem } from "./api/problem";
import { Loading } from "./components/query-states";
import { ConsoleLayout } from "./layout/console-layout";
import { ErrorPage } from "./layout/error-page";

type ScreenModule = { default: React.ComponentType };
const LOAD_ERROR =
  "Could not load this screen: the server is unreachable or was updated. Reload the page.";

const lazyScreen = (load: () => Promise<ScreenModule>) => async () => {
  const { default: Component } = await load().catch(() => {
    throw new Problem(0, { message: LOAD_ERROR });
  });
  return { Component };
};

const agentRoute: RouteObject = {
  path: "agents/:id",
  lazy: lazyScreen(() => import("./screens/agents/agent")),
  children: [
    { index: true, element: <Navigate to="workspace" replace /> },
    { path: "workspace", lazy: lazyScreen(() => import("./screens/files/agent-files")) },
    { path: "prompt", lazy: lazyScreen(() => import("./screens/prompt/prompt")) },
    { path: "runs", lazy: lazyScreen(() => import("./screens/runs/agent-runs")) },
    { path: "sessions", lazy: lazyScreen(() => import("./screens/sessions/sessions")) },
    { path: "sessions/:sid", lazy: lazyScreen(() => import("./screens/sessions/session")) },
    { path: "memory", lazy: lazyScreen(() => import("./screens/memory/memory")) },
    { path: "skills", lazy: lazyScreen(() => import("./screens/skills/agent-skills")) },
    { path: "items", lazy: lazyScreen(() => import("./screens/items/agent-items")) },
    { path: "connect", lazy: lazyScreen(() => import("./screens/agents/connect")) },
    { path: "settings", lazy: lazyScreen(() => import("./screens/agents/agent-settings")) },
  ],
};

const templateRoutes: RouteObject[] = [
  { path: "agent-templates", lazy: lazyScreen(() => import("./screens/templates/templates")) },
  {
    path: "agent-templates/defaults",
    lazy: lazyScreen(() => import("./screens/templates/defaults")),
    children: [
      { index: true, lazy: lazyScreen(() => import("./screens/templates/template-files")) },
      { path: "updates", lazy: lazyScreen(() => import("./screens/templates/template-updates")) },
    ],
  },
  {
    path: "agent-templates/defaults/review",
    lazy: lazyScreen(() => import("./screens/review/bulk-review")),
  },
  {
    path: "agent-templates/:templateId",
    lazy: lazyScreen(() => import("./screens/templates/template")),
    children: [
      { index: true, lazy: lazyScreen(() => import("./screens/templates/template-files")) },
      { path: "skills", lazy: lazyScreen(() => import("./screens/skills/template-skills")) },
      { path: "updates", lazy: lazyScreen(() => import("./screens/templates/template-updates")) },
    ],
  },
  {
    path: "agent-templates/:templateId/review",
    lazy: lazyScreen(() => import("./screens/review/bulk-review")),
  },
];

const settingsRoute: RouteObject = {
  path: "settings",
  lazy: lazyScreen(() => import("./screens/settings/settings")),
  children: [
    { index: true, element: <Navigate to="people" replace /> },
    { path: "account", lazy: lazyScreen(() => import("./screens/settings/account")) },
    { path: "people", lazy: lazyScreen(() => import("./screens/settings/people")) },
    { path: "keys", lazy: lazyScreen(() => import("./screens/settings/keys")) },
    { path: "policy", lazy: lazyScreen(() => import("./screens/settings/policy")) },
    { path: "secrets", lazy: lazyScreen(() => import("./screens/settings/secrets")) },
    { path: "webhooks", lazy: lazyScreen(() => import("./screens/settings/webhooks")) },
    { path: "webhooks/:id", lazy: lazyScreen(() => import("./screens/settings/webhook")) },
    { path: "audit", lazy: lazyScreen(() => import("./screens/settings/audit")) },
  ],
};

export const router = createBrowserRouter([
  {
    path: "sign-in",
    lazy: lazyScreen(() => import("./screens/sign-in/sign-in")),
    errorElement: <ErrorPage />,
    HydrateFallback: Loading,
  },
  {
    HydrateFallback: Loading,
    element: <ConsoleLayout />,
    errorElement: <ErrorPage />,
    children: [
      {
        // A crashed screen keeps the layout around it.
        errorElement: <ErrorPage />,
        children: [
          { index: true, element: <Navigate to="/overview" replace /> },
          { path: "overview", lazy: lazyScreen(() => import("./screens/overview/overview")) },
          { path: "inbox", lazy: lazyScreen(() => import("./screens/review/inbox")) },
          { path: "agents", lazy: lazyScreen(() => import("./screens/agents/agents")) },
          agentRoute,
          ...templateRoutes,
          { path: "runs", lazy: lazyScreen(() => import("./screens/runs/runs")) },
          { path: "runs/:id", lazy: lazyScreen(() => import("./screens/runs/run")) },
          { path: "approvals", lazy: lazyScreen(() => import("./screens/approvals/approvals")) },
          {
            path: "approvals/:id",
            lazy: lazyScreen(() => import("./screens/approvals/approvals")),
          },
          { path: "workspaces", lazy: lazyScreen(() => import("./screens/workspaces/workspaces")) },
          {
            path: "workspaces/:id",
            lazy: lazyScreen(() => import("./screens/workspaces/workspace")),
          },
          { path: "sandboxes", lazy: lazyScreen(() => import("./screens/sandboxes/sandboxes")) },
          { path: "sandboxes/:id", lazy: lazyScreen(() => import("./screens/sandboxes/sandbox")) },
          { path: "items", lazy: lazyScreen(() => import("./screens/items/items")) },
          settingsRoute,
          { path: "compare", lazy: lazyScreen(() => import("./screens/compare/compare")) },
          { path: "search", lazy: lazyScreen(() => import("./screens/search/search")) },
          { path: "*", element: <ErrorPage /> },
        ],
      },
    ],
  },
]);

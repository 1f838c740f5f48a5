import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router/dom";
import { Problem } from "./api/problem";
import { toastProblem } from "./components/toast";
import { applyTheme } from "./layout/theme";
import { router } from "./routes";
import "./styles/index.css";

applyTheme();

const worthAnother = (count: number, error: Error) =>
  count < 2 && (!(error instanceof Problem) || error.status === 0 || error.status >= 500);

const queries = new QueryClient({
  defaultOptions: { queries: { retry: worthAnother, staleTime: 5_000 } },
  mutationCache: new MutationCache({
    // A screen that says itself what went wrong says so with `meta: { quiet: true }`.
    onError: (error, _given, _context, mutation) => {
      if (!mutation.meta?.["quiet"]) toastProblem(error);
    },
  }),
});

createRoot(document.getElementById("app") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);

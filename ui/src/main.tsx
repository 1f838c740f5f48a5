import { MutationCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router/dom";
import { Problem } from "./api/problem";
import { toastProblem } from "./components/toast";
import { setRouter } from "./layout/navigation-state";
import { applyTheme } from "./layout/theme";
import { router } from "./routes";
import "./styles/index.css";

applyTheme();
setRouter(router);

const shouldRetry = (count: number, error: Error) =>
  count < 2 && (!(error instanceof Problem) || error.status === 0 || error.status >= 500);

const queryClient = new QueryClient({
  defaultOptions: { queries: { retry: shouldRetry, staleTime: 5_000 } },
  mutationCache: new MutationCache({
    // Mutations whose screen shows the error itself set `meta: { skipErrorToast: true }`.
    onError: (error, _variables, _context, mutation) => {
      if (!mutation.meta?.["skipErrorToast"]) toastProblem(error);
    },
  }),
});

createRoot(document.getElementById("app") as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);

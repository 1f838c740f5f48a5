// Lazy-loaded editor components: CodeMirror and Markdown are not part of the first load.

import { type ComponentProps, lazy, Suspense } from "react";
import { Loading } from "../components/query-states";

const LazyEditor = lazy(() => import("./text-editor"));
const LazySideBySide = lazy(() => import("./side-by-side"));
const LazyMarkdown = lazy(() => import("./markdown"));

export const TextEditor = (props: ComponentProps<typeof LazyEditor>) => (
  <Suspense fallback={<Loading label="Loading editor" />}>
    <LazyEditor {...props} />
  </Suspense>
);

export const SideBySide = (props: ComponentProps<typeof LazySideBySide>) => (
  <Suspense fallback={<Loading label="Loading diff" />}>
    <LazySideBySide {...props} />
  </Suspense>
);

export const Markdown = (props: ComponentProps<typeof LazyMarkdown>) => (
  <Suspense fallback={<Loading label="Loading preview" />}>
    <LazyMarkdown {...props} />
  </Suspense>
);

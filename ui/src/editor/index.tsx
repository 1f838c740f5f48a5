// The doors to what is loaded on demand: nothing of CodeMirror or markdown is in the first load.

import { type ComponentProps, lazy, Suspense } from "react";
import { Loading } from "../components/query-states";

const LazyEditor = lazy(() => import("./text-editor"));
const LazySideBySide = lazy(() => import("./side-by-side"));
const LazyMarkdown = lazy(() => import("./markdown"));

export const TextEditor = (props: ComponentProps<typeof LazyEditor>) => (
  <Suspense fallback={<Loading what="Loading the editor" />}>
    <LazyEditor {...props} />
  </Suspense>
);

export const SideBySide = (props: ComponentProps<typeof LazySideBySide>) => (
  <Suspense fallback={<Loading what="Loading the comparison" />}>
    <LazySideBySide {...props} />
  </Suspense>
);

export const Markdown = (props: ComponentProps<typeof LazyMarkdown>) => (
  <Suspense fallback={<Loading what="Loading the preview" />}>
    <LazyMarkdown {...props} />
  </Suspense>
);

// Structured result of a tool call: exit code, duration, changed files, and the whole as JSON.

import type { ReactNode } from "react";
import { Link } from "react-router";
import { type ChangedFile, structuredResult, toolOutcome } from "../api/tool-result";
import { escapeText } from "./escape-text";
import { LiteralText } from "./literal-text";
import { PropertyList } from "./property-list";

interface ToolResultProps {
  /** Reply with a structured result; nothing is shown without one. */
  reply: unknown;
  /** Workspace of the changed files, to link them. */
  workspaceId?: string | null | undefined;
}

export function ToolResult({ reply, workspaceId }: ToolResultProps) {
  const result = structuredResult(reply);
  if (!result) return null;
  const { exitCode, timedOut, truncated, durationMs, outputFiles, changed } = toolOutcome(result);
  const fileLink = (path: string) => <FileLink path={path} workspaceId={workspaceId} />;
  const items: [string, ReactNode][] = [];
  if (timedOut) items.push(["Timed out", "yes"]);
  if (exitCode !== null) items.push(["Exit code", exitCode]);
  if (durationMs !== null) items.push(["Duration", `${(durationMs / 1000).toFixed(2)} s`]);
  if (truncated) items.push(["Output", "cut"]);
  if (outputFiles.length > 0)
    items.push(["Output files", <List key="o" items={outputFiles.map(fileLink)} />]);
  if (changed.length > 0)
    items.push([
      "Changed files",
      <List
        key="c"
        items={changed.map((file) => (
          <Change key={file.path} file={file} link={fileLink(file.path)} />
        ))}
      />,
    ]);
  return (
    <section className="stack tight" aria-label="Tool outcome">
      {items.length > 0 && <PropertyList items={items} />}
      <details>
        <summary>As JSON</summary>
        <LiteralText text={JSON.stringify(result, null, 2)} label="Tool outcome as JSON" />
      </details>
    </section>
  );
}

function List({ items }: { items: ReactNode[] }) {
  return (
    <ul className="lines">
      {items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: items are never reordered
        <li key={index}>{item}</li>
      ))}
    </ul>
  );
}

function Change({ file, link }: { file: ChangedFile; link: ReactNode }) {
  return (
    <>
      {escapeText(file.change, 20)} {link} <span className="faint">version {file.version}</span>
    </>
  );
}

function FileLink({ path, workspaceId }: { path: string; workspaceId: string | null | undefined }) {
  const name = <span className="mono bidi">{escapeText(path)}</span>;
  if (!workspaceId) return name;
  return <Link to={`/workspaces/${workspaceId}?file=${encodeURIComponent(path)}`}>{name}</Link>;
}

// Prompt tab of an agent: main and shared prompt side by side.

import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { promptCharLimitOf } from "../../api/agent-config";
import { fileUrl } from "../../api/files";
import { Problem } from "../../api/problem";
import { type Block, promptQuery, type Scope } from "../../api/prompt";
import { escapeText } from "../../components/escape-text";
import { ErrorNotice, Loading } from "../../components/query-states";
import { useTitle } from "../../components/screen";
import { useAgent } from "../agents/agent-context";
import { LayerLegend } from "./context-bar";
import { layerOf } from "./layer";
import { LintFindings } from "./lint-findings";
import { PromptView } from "./prompt-view";

const SCOPE_HINTS: Record<Scope, string> = {
  main: "For sessions with one person",
  shared: "For sessions with several people; without private files",
};

export default function PromptScreen() {
  const { id } = useAgent();
  useTitle("Prompt");
  return (
    <section className="stack prompt-screen" aria-labelledby="prompt-heading">
      <div className="row wrap">
        <h2 id="prompt-heading" className="grow">
          Prompt
        </h2>
        <LayerLegend />
      </div>
      <LintFindings agentId={id} />
      <div className="side-by-side-panes">
        <ScopePane agentId={id} scope="main" />
        <ScopePane agentId={id} scope="shared" />
      </div>
    </section>
  );
}

function ScopePane({ agentId, scope }: { agentId: string; scope: Scope }) {
  const prompt = useQuery(promptQuery(agentId, scope));
  const charLimit = promptCharLimitOf(useAgent());
  const urlOf = (block: Block) => blockFileUrl(agentId, block);
  return (
    <section className="card" aria-labelledby={`prompt-${scope}`}>
      <header>
        <h3 id={`prompt-${scope}`}>{scope === "main" ? "Main" : "Shared"}</h3>
        <span className="faint">{SCOPE_HINTS[scope]}</span>
      </header>
      <div className="card-body">
        {prompt.isError ? (
          <NoPrompt agentId={agentId} error={prompt.error} onRetry={() => void prompt.refetch()} />
        ) : prompt.data ? (
          <PromptView prompt={prompt.data} name={scope} charLimit={charLimit} urlOf={urlOf} />
        ) : (
          <Loading label={`Loading ${scope} prompt`} />
        )}
      </div>
    </section>
  );
}

interface NoPromptProps {
  agentId: string;
  error: unknown;
  onRetry: () => void;
}

/** Error if a policy file does not fit: it is never cut, and the refusal names it. */
function NoPrompt({ agentId, error, onRetry }: NoPromptProps) {
  const path = error instanceof Problem ? error.details["path"] : null;
  return (
    <div className="stack">
      <ErrorNotice error={error} onRetry={onRetry} />
      {typeof path === "string" && (
        <p>
          Shorten{" "}
          <Link className="bidi" to={fileUrl({ kind: "agent", id: agentId }, path)}>
            {escapeText(path, 120)}
          </Link>{" "}
          to build the prompt.
        </p>
      )}
    </div>
  );
}

/** URL to edit a block's file; null if the block is no file. */
export function blockFileUrl(agentId: string, block: Block): string | null {
  if (block.version === null) return null;
  if (layerOf(block.source).kind !== "workspace")
    return fileUrl({ kind: "agent", id: agentId }, block.path);
  const slash = block.path.indexOf("/");
  return fileUrl(
    { kind: "workspace", id: block.path.slice(0, slash) },
    block.path.slice(slash + 1),
  );
}

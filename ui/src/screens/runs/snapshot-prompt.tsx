// What the model was told in a run, to the byte.

import { useQuery } from "@tanstack/react-query";
import type { Block } from "../../api/prompt";
import { type Run, runPromptQuery } from "../../api/runs";
import { Shown } from "../../components/query-states";
import { LayerLegend } from "../prompt/context-bar";
import { layerOf } from "../prompt/layer";
import { PromptView } from "../prompt/prompt-view";

export function FrozenPrompt({ run }: { run: Run }) {
  const prompt = useQuery(runPromptQuery(run.runId));
  return (
    <Shown query={prompt}>
      {(found) => (
        <div className="card">
          <header>
            <h2 className="grow">Prompt then</h2>
            <LayerLegend />
          </header>
          <div className="inside">
            <PromptView prompt={found} name={run.scope} to={frozenFile} />
          </div>
        </div>
      )}
    </Shown>
  );
}

const frozenFile = ({ version, source, path }: Block) =>
  version === null || layerOf(source).kind === "workspace"
    ? null
    : `?view=files&file=${encodeURIComponent(path)}`;

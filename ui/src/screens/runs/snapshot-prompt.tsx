// Prompt of a run's snapshot.

import { useQuery } from "@tanstack/react-query";
import type { Block } from "../../api/prompt";
import { type Run, runPromptQuery } from "../../api/runs";
import { QueryResult } from "../../components/query-states";
import { LayerLegend } from "../prompt/context-bar";
import { layerOf } from "../prompt/layer";
import { PromptView } from "../prompt/prompt-view";

export function SnapshotPrompt({ run }: { run: Run }) {
  const prompt = useQuery(runPromptQuery(run.runId));
  return (
    <QueryResult query={prompt}>
      {(data) => (
        <div className="card">
          <header>
            <h2 className="grow">Prompt</h2>
            <LayerLegend />
          </header>
          <div className="card-body">
            <PromptView prompt={data} name={run.scope} urlOf={snapshotFileUrl} />
          </div>
        </div>
      )}
    </QueryResult>
  );
}

const snapshotFileUrl = ({ version, source, path }: Block) =>
  version === null || layerOf(source).kind === "workspace"
    ? null
    : `?view=files&file=${encodeURIComponent(path)}`;

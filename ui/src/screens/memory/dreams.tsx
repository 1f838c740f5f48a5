// Dreams of an agent, with review, dry run and start.

import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { FlaskConical, MoonStar } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "react-router";
import { promotionCriteriaOf } from "../../api/agent-config";
import { type Dream, type DreamRow, dreamsQuery, runDream } from "../../api/dreams";
import { Button } from "../../components/button";
import { PagedRows } from "../../components/paged-rows";
import { EmptyState } from "../../components/query-states";
import { toast } from "../../components/toast";
import { useAgent } from "../agents/agent-context";
import { DreamDialog, StoredDreamDialog } from "./dream-dialog";
import { DreamTable } from "./dream-table";
import { CriteriaText } from "./promotion-criteria";
import { useDisabledReason } from "./use-disabled-reason";

export function Dreams({ agentId }: { agentId: string }) {
  const criteria = promotionCriteriaOf(useAgent());
  const dreams = useInfiniteQuery(dreamsQuery(agentId));
  const [params, setParams] = useSearchParams();
  const selected = params.get("dream");
  const select = (dream: string | null) =>
    setParams(dream ? { dream } : {}, { preventScrollReset: true });
  return (
    <section className="stack" aria-labelledby="dreams-heading">
      <div className="row wrap">
        <h2 id="dreams-heading" className="grow">
          Dreams
        </h2>
        <DreamButtons agentId={agentId} criteria={criteria} onFinished={select} />
      </div>
      <CriteriaText criteria={criteria} />
      <PagedRows query={dreams} noun="dreams">
        {(rows) => <DreamList dreams={rows} onSelect={select} />}
      </PagedRows>
      {selected && (
        <StoredDreamDialog
          agentId={agentId}
          dream={selected}
          criteria={criteria}
          onClose={() => select(null)}
        />
      )}
    </section>
  );
}

interface DreamListProps {
  dreams: readonly DreamRow[];
  onSelect: (dream: string) => void;
}

function DreamList({ dreams, onSelect }: DreamListProps) {
  const proposed = dreams.find(({ status }) => status === "proposed");
  if (dreams.length === 0)
    return (
      <EmptyState icon={MoonStar} title="No dreams yet">
        <p>
          A dream promotes memories that the agent recalled often, on different days and for
          different queries, to MEMORY.md. A dry run changes nothing.
        </p>
      </EmptyState>
    );
  return (
    <>
      {proposed && (
        <div className="notice update">
          <MoonStar size={16} aria-hidden />
          <div className="grow">
            <strong>Dream needs review.</strong> It would promote {proposed.promotedCount}{" "}
            {proposed.promotedCount === 1 ? "memory" : "memories"} to MEMORY.md.
          </div>
          <Button small onClick={() => onSelect(proposed.id)}>
            Review
          </Button>
        </div>
      )}
      <DreamTable dreams={dreams} onSelect={onSelect} />
    </>
  );
}

interface DreamButtonsProps {
  agentId: string;
  criteria: ReturnType<typeof promotionCriteriaOf>;
  onFinished: (dream: string) => void;
}

function DreamButtons({ agentId, criteria, onFinished }: DreamButtonsProps) {
  const [dryRunResult, setDryRunResult] = useState<Dream | null>(null);
  const disabledReason = useDisabledReason(agentId);
  const queries = useQueryClient();
  const dream = useMutation({
    mutationFn: (dryRun: boolean) => runDream(agentId, dryRun),
    onSuccess: (result) => {
      if (result.dryRun) return setDryRunResult(result);
      for (const key of ["dreams", "memories", "inbox"])
        void queries.invalidateQueries({ queryKey: [key] });
      toast(result.status === "proposed" ? "Dream needs review" : "Dream finished");
      onFinished(result.id);
    },
  });
  const busy = (dryRun: boolean) => dream.isPending && dream.variables === dryRun;
  const buttonProps = {
    disabled: Boolean(disabledReason) || dream.isPending,
    title: disabledReason,
  };
  return (
    <>
      <Button
        {...buttonProps}
        icon={FlaskConical}
        busy={busy(true)}
        onClick={() => dream.mutate(true)}
      >
        Dry run
      </Button>
      <Button
        {...buttonProps}
        icon={MoonStar}
        busy={busy(false)}
        onClick={() => dream.mutate(false)}
      >
        Start dream
      </Button>
      {dryRunResult && (
        <DreamDialog
          dream={dryRunResult}
          criteria={criteria}
          title="Dry run"
          onClose={() => setDryRunResult(null)}
        />
      )}
    </>
  );
}

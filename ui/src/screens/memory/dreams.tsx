// The dreams of an agent, the one that waits to be looked at first, and another at will.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { FlaskConical, MoonStar } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "react-router";
import { gatesOf } from "../../api/agent-config";
import { type Dream, type DreamRow, dreamsQuery, sweep } from "../../api/dreams";
import { Button } from "../../components/button";
import { Empty, Shown } from "../../components/query-states";
import { toast } from "../../components/toast";
import { useAgent } from "../agents/agent-context";
import { DreamDialog, KeptDream } from "./dream-dialog";
import { DreamTable } from "./dream-table";
import { GateList } from "./promotion-criteria";
import { useOnlyAdmins } from "./use-disabled-reason";

export function Dreams({ agentId }: { agentId: string }) {
  const gates = gatesOf(useAgent());
  const dreams = useQuery(dreamsQuery(agentId));
  const [params, setParams] = useSearchParams();
  const chosen = params.get("dream");
  const choose = (dream: string | null) =>
    setParams(dream ? { dream } : {}, { preventScrollReset: true });
  return (
    <section className="stack" aria-labelledby="dreams-heading">
      <div className="row wrap">
        <h2 id="dreams-heading" className="grow">
          Dreams
        </h2>
        <DreamButtons agentId={agentId} gates={gates} onDreamt={choose} />
      </div>
      <GateList gates={gates} />
      <Shown query={dreams}>{(found) => <DreamsFound dreams={found} onChoose={choose} />}</Shown>
      {chosen && (
        <KeptDream agentId={agentId} dream={chosen} gates={gates} onClose={() => choose(null)} />
      )}
    </section>
  );
}

interface DreamsFoundProps {
  dreams: readonly DreamRow[];
  onChoose: (dream: string) => void;
}

function DreamsFound({ dreams, onChoose }: DreamsFoundProps) {
  const waiting = dreams.find(({ status }) => status === "proposed");
  if (dreams.length === 0)
    return (
      <Empty icon={MoonStar} title="No dreams yet">
        <p>
          A dream looks at what the agent has recalled, promotes what came up often and for
          different questions, and says of everything else why not. Try a dry run: it changes
          nothing.
        </p>
      </Empty>
    );
  return (
    <>
      {waiting && (
        <div className="notice update">
          <MoonStar size={16} aria-hidden />
          <div className="grow">
            <strong>A dream waits for a review.</strong> It would promote {waiting.promotedCount}{" "}
            {waiting.promotedCount === 1 ? "memory" : "memories"} into MEMORY.md.
          </div>
          <Button small onClick={() => onChoose(waiting.id)}>
            Review
          </Button>
        </div>
      )}
      <DreamTable dreams={dreams} onChoose={onChoose} />
    </>
  );
}

interface DreamButtonsProps {
  agentId: string;
  gates: ReturnType<typeof gatesOf>;
  onDreamt: (dream: string) => void;
}

function DreamButtons({ agentId, gates, onDreamt }: DreamButtonsProps) {
  const [tried, setTried] = useState<Dream | null>(null);
  const forbidden = useOnlyAdmins();
  const queries = useQueryClient();
  const dream = useMutation({
    mutationFn: (dryRun: boolean) => sweep(agentId, dryRun),
    onSuccess: (found) => {
      if (found.dryRun) return setTried(found);
      for (const key of ["dreams", "memories", "inbox"])
        void queries.invalidateQueries({ queryKey: [key] });
      toast(found.status === "proposed" ? "The dream waits for a review." : "It has dreamed.");
      onDreamt(found.id);
    },
  });
  const busy = (dryRun: boolean) => dream.isPending && dream.variables === dryRun;
  const shared = { disabled: Boolean(forbidden) || dream.isPending, title: forbidden };
  return (
    <>
      <Button {...shared} icon={FlaskConical} busy={busy(true)} onClick={() => dream.mutate(true)}>
        Dry run
      </Button>
      <Button {...shared} icon={MoonStar} busy={busy(false)} onClick={() => dream.mutate(false)}>
        Dream now
      </Button>
      {tried && (
        <DreamDialog
          dream={tried}
          gates={gates}
          title="What a dream would do"
          onClose={() => setTried(null)}
        />
      )}
    </>
  );
}

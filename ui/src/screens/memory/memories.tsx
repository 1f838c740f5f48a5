// Memories of an agent, with search.

import { useInfiniteQuery } from "@tanstack/react-query";
import { Brain, Plus } from "lucide-react";
import { useDeferredValue, useState } from "react";
import type { Memory } from "../../api/memories";
import { memoriesQuery } from "../../api/memories";
import { Button } from "../../components/button";
import { SearchField } from "../../components/field";
import { MoreRows, rowsOf } from "../../components/paged-rows";
import { EmptyState, ErrorNotice, Loading } from "../../components/query-states";
import { EditMemoryDialog } from "./edit-memory-dialog";
import { ForgetDialog } from "./forget-dialog";
import { MemoryRow } from "./memory-row";
import { RememberDialog } from "./remember-dialog";
import { useDisabledReason } from "./use-disabled-reason";

export function Memories({ agentId }: { agentId: string }) {
  const [adding, setAdding] = useState(false);
  const [q, setQ] = useState("");
  const disabledReason = useDisabledReason(agentId);
  return (
    <section className="stack" aria-labelledby="memories-heading">
      <div className="row wrap">
        <h2 id="memories-heading" className="grow">
          Memories
        </h2>
        <Button
          icon={Plus}
          disabled={Boolean(disabledReason)}
          title={disabledReason}
          onClick={() => setAdding(true)}
        >
          New memory
        </Button>
      </div>
      <div className="stack tight">
        <SearchField label="Search memories" value={q} onChange={setQ} />
        {q && <p className="faint">Best match first. Searches here do not count as recalls.</p>}
      </div>
      <MemoryList agentId={agentId} q={useDeferredValue(q.trim())} />
      {adding && <RememberDialog agentId={agentId} onClose={() => setAdding(false)} />}
    </section>
  );
}

function MemoryList({ agentId, q }: { agentId: string; q: string }) {
  const query = useInfiniteQuery(memoriesQuery(agentId, q));
  const [deleting, setDeleting] = useState<Memory | null>(null);
  const [editing, setEditing] = useState<Memory | null>(null);
  const memories = rowsOf(query);
  if (query.isPending) return <Loading label="Loading memories" />;
  if (query.isError)
    return <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />;
  if (memories.length === 0) return <NoMemories isFiltered={q !== ""} />;
  return (
    <>
      <ul className="card memory-list" aria-label={q ? "Results" : "Memories"}>
        {memories.map((memory) => (
          <MemoryRow
            key={memory.id}
            agentId={agentId}
            memory={memory}
            onForget={() => setDeleting(memory)}
            onEdit={() => setEditing(memory)}
          />
        ))}
      </ul>
      <MoreRows query={query} noun="memories" />
      {editing && (
        <EditMemoryDialog agentId={agentId} memory={editing} onClose={() => setEditing(null)} />
      )}
      {deleting && (
        <ForgetDialog agentId={agentId} memory={deleting} onClose={() => setDeleting(null)} />
      )}
    </>
  );
}

function NoMemories({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <EmptyState icon={Brain} title="No results">
      <p>Matches word prefixes, ignoring case and accents.</p>
    </EmptyState>
  ) : (
    <EmptyState icon={Brain} title="No memories yet">
      <p>
        Agents store memories with the tool <code>remember</code>. Frequently recalled memories are
        promoted to MEMORY.md.
      </p>
    </EmptyState>
  );
}

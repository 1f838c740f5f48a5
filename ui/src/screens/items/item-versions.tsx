// Earlier versions of an item, with restore.

import { useQuery } from "@tanstack/react-query";
import { ChevronLeft, ChevronRight, RotateCcw } from "lucide-react";
import { useState } from "react";
import { type Item, itemQuery } from "../../api/items";
import { Problem } from "../../api/problem";
import { Button } from "../../components/button";
import { LiteralText } from "../../components/literal-text";
import { ErrorNotice, Loading } from "../../components/query-states";
import { Time } from "../../components/time";

interface ItemVersionsProps {
  agentId: string;
  item: Item;
  onRestore: (value: string) => void;
}

export function ItemVersions({ agentId, item, onRestore }: ItemVersionsProps) {
  const [version, setVersion] = useState<number | null>(null);
  if (item.version === 1) return null;
  if (version === null) {
    return (
      <div>
        <Button small onClick={() => setVersion(item.version - 1)}>
          Earlier versions
        </Button>
      </div>
    );
  }
  return (
    <section className="stack tight" aria-label="Earlier versions">
      <div className="row">
        <Button
          small
          icon={ChevronLeft}
          aria-label="Older"
          disabled={version <= 1}
          onClick={() => setVersion(version - 1)}
        />
        <h3>Version {version}</h3>
        <Button
          small
          icon={ChevronRight}
          aria-label="Newer"
          disabled={version >= item.version - 1}
          onClick={() => setVersion(version + 1)}
        />
        <Button small kind="plain" className="end" onClick={() => setVersion(null)}>
          Close
        </Button>
      </div>
      <VersionValue agentId={agentId} itemKey={item.key} version={version} onRestore={onRestore} />
    </section>
  );
}

interface VersionValueProps {
  agentId: string;
  itemKey: string;
  version: number;
  onRestore: (value: string) => void;
}

function VersionValue({ agentId, itemKey, version, onRestore }: VersionValueProps) {
  const { data, error } = useQuery({
    ...itemQuery(agentId, itemKey, version),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error instanceof Problem && error.status === 404) {
    return <p className="faint">Deleted at this version, or no longer stored.</p>;
  }
  if (error) return <ErrorNotice error={error} />;
  if (!data) return <Loading />;
  return (
    <>
      <LiteralText text={data.value} label={`Value at version ${version}`} />
      <div className="row">
        <span className="faint">
          Saved <Time at={data.updatedAt} />
        </span>
        <Button small icon={RotateCcw} className="end" onClick={() => onRestore(data.value)}>
          Restore this version
        </Button>
      </div>
    </>
  );
}

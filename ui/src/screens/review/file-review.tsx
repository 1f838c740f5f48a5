import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { pinsQuery } from "../../api/pins";
import { isAdmin } from "../../api/session";
import { Button } from "../../components/button";
import { Shown } from "../../components/query-states";
import { useSession } from "../../layout/session-context";
import { Comparison } from "./comparison";
import { FollowerChoice } from "./follower-selection";
import type { FileWaiting, Group, Waiting } from "./followers";
import { Outcomes } from "./outcomes";
import { Standings } from "./pinned-versions";
import { Offer } from "./update-details";
import { useBulkAccept } from "./use-bulk-accept";

interface FileReviewProps {
  templateId: string;
  path: string;
  file: FileWaiting | undefined;
  none: ReactNode;
  onWork: (working: boolean) => void;
}

/** One file: the difference once, those who wait, and what became of them. */
export function FileReview({ templateId, path, file, none, onWork }: FileReviewProps) {
  const bulk = useBulkAccept(templateId, path);
  const working = bulk.work !== null;
  useEffect(() => onWork(working), [working, onWork]);
  const sha256 = bare(file?.latest);
  const failed = bulk.outcomes.filter(({ error }) => error).map(({ agent }) => agent);
  return (
    <>
      {file ? <Waits file={file} bulk={bulk} /> : bulk.outcomes.length === 0 && none}
      {bulk.work && <Progress {...bulk.work} />}
      <Outcomes
        outcomes={bulk.outcomes}
        busy={working}
        retry={sha256 && failed.length > 0 ? () => void bulk.forSome(failed, sha256) : undefined}
      />
    </>
  );
}

const bare = (digest: string | undefined) => digest?.replace(/^sha256:/, "") ?? "";

function Waits({ file, bulk }: { file: FileWaiting; bulk: ReturnType<typeof useBulkAccept> }) {
  const admin = isAdmin(useSession());
  const [seen, setSeen] = useState(file.latest);
  const [standing, setStanding] = useState(0);
  const all = useMemo(() => file.groups.flatMap(({ agents }) => agents), [file]);
  const group = file.groups[standing] ?? file.groups[0];
  const moved = seen !== file.latest;
  const accept = (chosen: Waiting[]) => {
    const whole = chosen.length === all.length;
    void (whole ? bulk.forAll : bulk.forSome)(chosen, bare(file.latest));
  };
  return (
    <>
      {moved && <MovedOn onSeen={() => setSeen(file.latest)} />}
      <Standings groups={file.groups} chosen={standing} onChoose={setStanding} />
      {group && <Difference group={group} path={file.path} />}
      <FollowerChoice
        groups={file.groups}
        locked={!admin ? READERS : moved ? "Look at the newer text first." : null}
        busy={bulk.work !== null}
        onAccept={accept}
      />
    </>
  );
}

const READERS = "Only an owner or an admin accepts: you may read.";

/** Any agent of the group shows what all of it have. */
function Difference({ group, path }: { group: Group; path: string }) {
  const pins = useQuery(pinsQuery(group.agents[0]?.id ?? ""));
  return (
    <Shown query={pins}>
      {(found) => {
        const pin = found.find((each) => each.path === path);
        if (!pin) return <p className="faint">It is no longer pinned.</p>;
        return (
          <div className="stack">
            <Offer pin={pin} />
            <Comparison pinned={pin.pinnedContent} latest={pin.latestContent} path={path} />
          </div>
        );
      }}
    </Shown>
  );
}

function MovedOn({ onSeen }: { onSeen: () => void }) {
  return (
    <div className="notice update" role="alert">
      <RefreshCw size={16} aria-hidden />
      <div className="grow">
        <strong>Upstream has moved on.</strong> What is shown is newer than what you began to read.
      </div>
      <Button small onClick={onSeen}>
        I review the newer one
      </Button>
    </div>
  );
}

function Progress({ done, total }: { done: number; total: number }) {
  return (
    <label className="stack tight">
      <span className="soft">
        Accepting for {total.toLocaleString("en")} {total === 1 ? "agent" : "agents"}
        {done > 0 && `: ${done.toLocaleString("en")} done`}
      </span>
      <progress className="progress" max={total} {...(done > 0 && { value: done })} />
    </label>
  );
}

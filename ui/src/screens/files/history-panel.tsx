// What became of a file: who wrote which version and why, what it changed, and the way back.

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { useAuthors } from "../../api/authors";
import {
  DEFAULTS,
  diffQuery,
  type Explained,
  explainQuery,
  type File,
  historyQuery,
  type Place,
  restoreFile,
  type Version,
} from "../../api/files";
import { Problem } from "../../api/problem";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { plain } from "../../components/escape-text";
import { Loading, Refused, Shown } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { UnifiedDiff } from "../../components/unified-diff";
import { refresh } from "./use-save-file";

interface HistoryProps {
  place: Place;
  path: string;
  file: File | null;
  canWrite: boolean;
}

const LAYERS = { agent: "This agent", template: "Template", defaults: "Defaults" } as const;

/** The layers that ever said something of a file, each with a history of its own. */
function layersOf(place: Place, explained: Explained | undefined): Place[] {
  if (place.kind !== "agent") return [place];
  const spoke = (explained?.layers ?? []).filter(({ version }) => version !== null);
  const kinds = new Map<string, Place>();
  for (const { kind, name } of spoke) {
    if (kind === "agent" || kind === "pins") kinds.set("agent", place);
    if (kind === "template") kinds.set(kind, { kind, id: name });
    if (kind === "defaults") kinds.set(kind, DEFAULTS);
  }
  return [...kinds.values()];
}

export function HistoryPanel(props: HistoryProps) {
  const { place, path } = props;
  const explained = useQuery({ ...explainQuery(place, path), enabled: place.kind === "agent" });
  const [chosen, choose] = useState<Place["kind"] | null>(null);
  const borrowed = place.kind === "template" && props.file?.source === "defaults";
  const layers = borrowed ? [DEFAULTS] : layersOf(place, explained.data);
  const shown = layers.find(({ kind }) => kind === chosen) ?? layers[0];
  if (!shown) return explained.isError ? <Refused error={explained.error} /> : <Loading />;
  return (
    <div className="stack">
      {layers.length > 1 && (
        <div className="tabs" role="group" aria-label="Whose history">
          {layers.map(({ kind }) => (
            <button
              key={kind}
              type="button"
              aria-pressed={kind === shown.kind}
              className={kind === shown.kind ? "on" : ""}
              onClick={() => choose(kind)}
            >
              {LAYERS[kind as keyof typeof LAYERS]}
            </button>
          ))}
        </div>
      )}
      {layers.every(({ kind }) => kind !== place.kind) && (
        <p className="faint">
          Nothing was changed here yet. This is the history in the {shown.kind}.
        </p>
      )}
      <Versions key={shown.kind} {...props} of={shown} />
    </div>
  );
}

function Versions({ of, ...props }: HistoryProps & { of: Place }) {
  const query = useQuery(historyQuery(of, props.path));
  const [marked, mark] = useState<number[]>([]);
  const [isOpen, open] = useState<number | null>(null);
  const pair = marked.length === 2 ? marked.toSorted((one, other) => one - other) : null;
  const toggle = (version: number) =>
    mark(
      marked.includes(version)
        ? marked.filter((each) => each !== version)
        : [...marked.slice(-1), version],
    );
  if (query.error instanceof Problem && query.error.status === 404)
    return <p className="faint">Nothing was ever written here.</p>;
  return (
    <Shown query={query} what="Loading the history">
      {({ items, next }) => (
        <>
          {pair && (
            <section className="stack tight" aria-label="Two versions compared">
              <div className="row">
                <strong className="grow">
                  Version {pair[0]} to {pair[1]}
                </strong>
                <Button small kind="plain" onClick={() => mark([])}>
                  Done
                </Button>
              </div>
              <Difference of={of} path={props.path} from={pair[0] ?? 0} to={pair[1] ?? 0} />
            </section>
          )}
          {!pair && items.length > 1 && <p className="faint">Mark two versions to compare them.</p>}
          <ol className="versions">
            {items.map((version, at) => (
              <VersionItem
                key={version.version}
                {...props}
                of={of}
                version={version}
                isNewest={at === 0}
                isMarked={marked.includes(version.version)}
                onMark={() => toggle(version.version)}
                isOpen={isOpen === version.version}
                onOpen={() => open(isOpen === version.version ? null : version.version)}
              />
            ))}
          </ol>
          {next && <p className="faint">Older versions are told by the API.</p>}
        </>
      )}
    </Shown>
  );
}

interface VersionItemProps extends HistoryProps {
  of: Place;
  version: Version;
  isNewest: boolean;
  isMarked: boolean;
  onMark: () => void;
  isOpen: boolean;
  onOpen: () => void;
}

function VersionItem(props: VersionItemProps) {
  const { of, version, isNewest, isMarked, onMark, isOpen, onOpen, place, path, canWrite } = props;
  const author = useAuthors();
  const number = version.version;
  const mine = of.kind === place.kind && of.id === place.id;
  return (
    <li className="version">
      <div className="row">
        <label className="check">
          <input
            type="checkbox"
            checked={isMarked}
            onChange={onMark}
            aria-label={`Compare version ${number}`}
          />
          <strong>Version {number}</strong>
        </label>
        {version.deleted && <span className="badge">taken away</span>}
        <span className="grow" />
        <span className="faint">
          <Time at={version.updatedAt} />
        </span>
      </div>
      <div className="bidi">{plain(version.reason, 500)}</div>
      <div className="row wrap faint">
        <span className="bidi">{author(version.author)}</span>
        {version.runId && <Link to={`/runs/${encodeURIComponent(version.runId)}`}>by a run</Link>}
        <span className="grow" />
        <Button small kind="plain" aria-expanded={isOpen} onClick={onOpen}>
          What changed
        </Button>
        {mine && canWrite && !isNewest && !version.deleted && (
          <Restore {...{ place, path, version: number, pinned: props.file?.class === "pinned" }} />
        )}
      </div>
      {isOpen && <Difference of={of} path={path} from={number - 1} to={number} />}
    </li>
  );
}

function Difference({ of, path, from, to }: { of: Place; path: string; from: number; to: number }) {
  const query = useQuery({ ...diffQuery(of, path, from, to), retry: false });
  if (query.error instanceof Problem && query.error.status === 404)
    return (
      <p className="faint">
        There is nothing to compare it with: it was set with the agent, or the older one was pruned.
      </p>
    );
  return <Shown query={query}>{(text) => <UnifiedDiff text={text} />}</Shown>;
}

interface RestoreProps {
  place: Place;
  path: string;
  version: number;
  pinned: boolean;
}

function Restore({ place, path, version, pinned }: RestoreProps) {
  const queries = useQueryClient();
  const [isAsking, ask] = useState(false);
  const override = pinned && place.kind === "agent";
  const restore = useMutation({
    mutationFn: () => restoreFile(place, path, version, override),
    onSuccess: () => {
      toast(`Version ${version} is the newest again.`);
      refresh(queries, place);
    },
    onSettled: () => ask(false),
  });
  return (
    <>
      <Button small kind="plain" onClick={() => ask(true)}>
        Restore
      </Button>
      {isAsking && (
        <Confirm
          title={`Restore version ${version}?`}
          action="Restore"
          busy={restore.isPending}
          onConfirm={() => restore.mutate()}
          onClose={() => ask(false)}
        >
          <p>
            Its text becomes the newest version of{" "}
            <span className="mono bidi">{plain(path, 80)}</span>. What is there now stays in the
            history.
          </p>
          {override && (
            <p>The file is pinned: it will override what was reviewed, for this agent.</p>
          )}
        </Confirm>
      )}
    </>
  );
}

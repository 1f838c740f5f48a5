// History of a file: versions, diffs and restore.

import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "react-router";
import { useAuthorNames } from "../../api/authors";
import {
  DEFAULTS,
  diffQuery,
  explainQuery,
  type File,
  type FileExplanation,
  type FileScope,
  fileReference,
  historyPagesQuery,
  restoreFile,
  type Version,
} from "../../api/files";
import { Problem } from "../../api/problem";
import { Button } from "../../components/button";
import { Confirm } from "../../components/dialog";
import { escapeText } from "../../components/escape-text";
import { ErrorNotice, Loading, QueryResult } from "../../components/query-states";
import { Time } from "../../components/time";
import { toast } from "../../components/toast";
import { UnifiedDiff } from "../../components/unified-diff";
import { compareUrl } from "../compare/references";
import { isOfReview, RollBackButton } from "./roll-back-button";
import { refreshFiles } from "./use-save-file";
import { VersionReaders, VersionText } from "./version-text";

interface HistoryProps {
  scope: FileScope;
  path: string;
  file: File | null;
  canWrite: boolean;
}

const LAYER_NAMES = { agent: "This agent", template: "Template", defaults: "Defaults" } as const;

/** Layers that have a history of the file. */
function listLayers(scope: FileScope, explanation: FileExplanation | undefined): FileScope[] {
  if (scope.kind !== "agent") return [scope];
  const withVersions = (explanation?.layers ?? []).filter(({ version }) => version !== null);
  const byKind = new Map<string, FileScope>();
  for (const { kind, name } of withVersions) {
    if (kind === "agent" || kind === "pins") byKind.set("agent", scope);
    if (kind === "template") byKind.set(kind, { kind, id: name });
    if (kind === "defaults") byKind.set(kind, DEFAULTS);
  }
  return [...byKind.values()];
}

export function HistoryPanel(props: HistoryProps) {
  const { scope, path } = props;
  const explanation = useQuery({ ...explainQuery(scope, path), enabled: scope.kind === "agent" });
  const [selectedKind, setSelectedKind] = useState<FileScope["kind"] | null>(null);
  const isFromDefaults = scope.kind === "template" && props.file?.source === "defaults";
  const layers = isFromDefaults ? [DEFAULTS] : listLayers(scope, explanation.data);
  const selected = layers.find(({ kind }) => kind === selectedKind) ?? layers[0];
  if (!selected)
    return explanation.isError ? <ErrorNotice error={explanation.error} /> : <Loading />;
  return (
    <div className="stack">
      {layers.length > 1 && (
        <div className="tabs" role="group" aria-label="Layer">
          {layers.map(({ kind }) => (
            <button
              key={kind}
              type="button"
              aria-pressed={kind === selected.kind}
              className={kind === selected.kind ? "active" : ""}
              onClick={() => setSelectedKind(kind)}
            >
              {LAYER_NAMES[kind as keyof typeof LAYER_NAMES]}
            </button>
          ))}
        </div>
      )}
      {layers.every(({ kind }) => kind !== scope.kind) && (
        <p className="faint">Not changed here. Showing the history of the {selected.kind}.</p>
      )}
      <Versions key={selected.kind} {...props} layer={selected} />
    </div>
  );
}

function Versions({ layer, ...props }: HistoryProps & { layer: FileScope }) {
  const query = useInfiniteQuery(historyPagesQuery(layer, props.path));
  const [compared, setCompared] = useState<number[]>([]);
  const [openVersion, setOpenVersion] = useState<number | null>(null);
  const pair = compared.length === 2 ? compared.toSorted((a, b) => a - b) : null;
  const toggle = (version: number) =>
    setCompared(
      compared.includes(version)
        ? compared.filter((item) => item !== version)
        : [...compared.slice(-1), version],
    );
  if (query.error instanceof Problem && query.error.status === 404)
    return <p className="faint">No versions.</p>;
  return (
    <QueryResult query={query} label="Loading history">
      {({ pages }) => (
        <>
          {pair && (
            <section className="stack tight" aria-label="Comparison">
              <div className="row">
                <strong className="grow">
                  Version {pair[0]} to {pair[1]}
                </strong>
                <Link
                  to={compareUrl(
                    fileReference(layer, props.path, pair[0]),
                    fileReference(layer, props.path, pair[1]),
                  )}
                >
                  Full page
                </Link>
                <Button small kind="plain" onClick={() => setCompared([])}>
                  Close
                </Button>
              </div>
              <VersionDiff layer={layer} path={props.path} from={pair[0] ?? 0} to={pair[1] ?? 0} />
            </section>
          )}
          {!pair && (pages[0]?.items.length ?? 0) > 1 && (
            <p className="faint">Select two versions to compare.</p>
          )}
          <ol className="versions">
            {pages
              .flatMap(({ items }) => items)
              .map((version, index) => (
                <VersionItem
                  key={version.version}
                  {...props}
                  layer={layer}
                  version={version}
                  isNewest={index === 0}
                  isCompared={compared.includes(version.version)}
                  onCompare={() => toggle(version.version)}
                  isOpen={openVersion === version.version}
                  onOpen={() =>
                    setOpenVersion(openVersion === version.version ? null : version.version)
                  }
                />
              ))}
          </ol>
          {query.hasNextPage && (
            <Button
              small
              busy={query.isFetchingNextPage}
              onClick={() => void query.fetchNextPage()}
            >
              Load older versions
            </Button>
          )}
        </>
      )}
    </QueryResult>
  );
}

interface VersionItemProps extends HistoryProps {
  layer: FileScope;
  version: Version;
  isNewest: boolean;
  isCompared: boolean;
  onCompare: () => void;
  isOpen: boolean;
  onOpen: () => void;
}

function VersionItem(props: VersionItemProps) {
  const { layer, version, isNewest, isCompared, onCompare, isOpen, onOpen, scope, path, canWrite } =
    props;
  const authorName = useAuthorNames();
  const number = version.version;
  const [openPart, setOpenPart] = useState<Part | null>(null);
  const isOwnLayer = layer.kind === scope.kind && layer.id === scope.id;
  return (
    <li className="version">
      <div className="row">
        <label className="check">
          <input
            type="checkbox"
            checked={isCompared}
            onChange={onCompare}
            aria-label={`Compare version ${number}`}
          />
          <strong>Version {number}</strong>
        </label>
        {version.deleted && <span className="badge">deleted</span>}
        <span className="grow" />
        <span className="faint">
          <Time at={version.updatedAt} />
        </span>
      </div>
      <div className="bidi">{escapeText(version.reason, 500)}</div>
      <div className="row wrap faint">
        <span className="bidi">{authorName(version.author)}</span>
        {version.runId && <Link to={`/runs/${encodeURIComponent(version.runId)}`}>run</Link>}
        <span className="grow" />
        {!version.deleted && !version.redacted && (
          <>
            <PartButton name="Text" part="text" {...{ openPart, setOpenPart }} />
            <PartButton name="Read by" part="readers" {...{ openPart, setOpenPart }} />
          </>
        )}
        <Button small kind="plain" aria-expanded={isOpen} onClick={onOpen}>
          Diff
        </Button>
        {isOwnLayer && canWrite && isNewest && scope.kind === "agent" && isOfReview(version) && (
          <RollBackButton agentId={scope.id} path={path} version={version} />
        )}
        {isOwnLayer && canWrite && !isNewest && !version.deleted && (
          <RestoreButton
            {...{ scope, path, version: number, pinned: props.file?.class === "pinned" }}
          />
        )}
      </div>
      {isOpen && <VersionDiff layer={layer} path={path} from={number - 1} to={number} />}
      {openPart === "text" && <VersionText scope={layer} path={path} version={number} />}
      {openPart === "readers" && <VersionReaders scope={layer} path={path} version={number} />}
    </li>
  );
}

type Part = "text" | "readers";

interface PartButtonProps {
  name: string;
  part: Part;
  openPart: Part | null;
  setOpenPart: (part: Part | null) => void;
}

function PartButton({ name, part, openPart, setOpenPart }: PartButtonProps) {
  const isOpen = openPart === part;
  return (
    <Button
      small
      kind="plain"
      aria-expanded={isOpen}
      onClick={() => setOpenPart(isOpen ? null : part)}
    >
      {name}
    </Button>
  );
}

function VersionDiff({
  layer,
  path,
  from,
  to,
}: {
  layer: FileScope;
  path: string;
  from: number;
  to: number;
}) {
  const query = useQuery({ ...diffQuery(layer, path, from, to), retry: false });
  if (query.error instanceof Problem && query.error.status === 404)
    return <p className="faint">No earlier version to compare with.</p>;
  return <QueryResult query={query}>{(text) => <UnifiedDiff text={text} />}</QueryResult>;
}

interface RestoreProps {
  scope: FileScope;
  path: string;
  version: number;
  pinned: boolean;
}

function RestoreButton({ scope, path, version, pinned }: RestoreProps) {
  const queries = useQueryClient();
  const [isConfirming, setConfirming] = useState(false);
  const override = pinned && scope.kind === "agent";
  const restore = useMutation({
    mutationFn: () => restoreFile(scope, path, version, override),
    onSuccess: () => {
      toast(`Restored version ${version}`);
      refreshFiles(queries, scope);
    },
    onSettled: () => setConfirming(false),
  });
  return (
    <>
      <Button small kind="plain" onClick={() => setConfirming(true)}>
        Restore this version
      </Button>
      {isConfirming && (
        <Confirm
          title={`Restore version ${version}?`}
          action="Restore"
          busy={restore.isPending}
          onConfirm={() => restore.mutate()}
          onClose={() => setConfirming(false)}
        >
          <p>
            Creates a new version of <span className="mono bidi">{escapeText(path, 80)}</span> with
            this text.
          </p>
          {override && (
            <p>The file is pinned. Restoring overrides the reviewed version for this agent.</p>
          )}
        </Confirm>
      )}
    </>
  );
}

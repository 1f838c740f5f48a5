// Files of a comparison with their status, and the diff of the selected one.

import { useQuery } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { Link, useSearchParams } from "react-router";
import {
  type ComparedPath,
  type ComparedSides,
  type Comparison,
  type ComparisonStatus,
  fileComparisonQuery,
} from "../../api/compare";
import { escapeText } from "../../components/escape-text";
import { EmptyState, QueryResult } from "../../components/query-states";
import { UnifiedDiff } from "../../components/unified-diff";
import { layerOf } from "../prompt/layer";

const STATUS_LABELS: Record<ComparisonStatus, { text: string; className: string }> = {
  changed: { text: "changed", className: "update" },
  "only-left": { text: "only left", className: "bad" },
  "only-right": { text: "only right", className: "good" },
  unknown: { text: "unknown", className: "" },
  same: { text: "same", className: "" },
};

interface ComparisonResultProps {
  pages: Comparison[];
  sides: ComparedSides;
}

export function ComparisonResult({ pages, sides }: ComparisonResultProps) {
  const [params] = useSearchParams();
  const first = pages[0] as Comparison;
  const items = pages.flatMap((page) => page.items);
  const selected = items.find(({ path }) => path === params.get("file")) ?? items[0];
  return (
    <>
      <Counts comparison={first} />
      {selected ? (
        <div className="list-detail">
          <nav className="card path-list" aria-label="Compared files">
            {items.map((item) => (
              <PathLink key={item.path} item={item} isActive={item === selected} />
            ))}
          </nav>
          <FileComparison sides={sides} item={selected} />
        </div>
      ) : (
        <EmptyState icon={Check} title="No differences">
          <p>{first.counts.same.toLocaleString("en")} files are equal.</p>
        </EmptyState>
      )}
    </>
  );
}

function Counts({ comparison: { counts, left, right } }: { comparison: Comparison }) {
  const total = counts.changed + counts.onlyLeft + counts.onlyRight;
  const parts = [
    `${counts.changed.toLocaleString("en")} changed`,
    `${counts.onlyLeft.toLocaleString("en")} only left`,
    `${counts.onlyRight.toLocaleString("en")} only right`,
    `${counts.same.toLocaleString("en")} equal`,
  ];
  const name = (side: Comparison["left"]) => escapeText(side.name || "Defaults", 60);
  return (
    <p role="status" className="bidi">
      <strong>
        {name(left)} and {name(right)}:
      </strong>{" "}
      {total === 0 ? "no differences" : parts.join(", ")}
      {counts.unknown > 0 &&
        `, ${counts.unknown.toLocaleString("en")} unknown: their versions of that time were pruned`}
      .
    </p>
  );
}

function PathLink({ item, isActive }: { item: ComparedPath; isActive: boolean }) {
  const [params] = useSearchParams();
  const { text, className } = STATUS_LABELS[item.status];
  const search = new URLSearchParams(params);
  search.set("file", item.path);
  return (
    <Link
      to={{ search: `?${search}` }}
      preventScrollReset
      className={isActive ? "active" : ""}
      aria-current={isActive ? "true" : undefined}
    >
      <span className="truncate bidi grow">{escapeText(item.path, 120)}</span>
      <span className={`badge ${className}`}>{text}</span>
    </Link>
  );
}

function FileComparison({ sides, item }: { sides: ComparedSides; item: ComparedPath }) {
  const comparison = useQuery({
    ...fileComparisonQuery(sides, item),
    enabled: item.status !== "unknown",
  });
  return (
    <article className="card" aria-label={escapeText(item.path, 120)}>
      <header>
        <h2 className="truncate bidi grow">{escapeText(item.path, 120)}</h2>
        <span className="faint">
          {describe(item.left)} → {describe(item.right)}
        </span>
      </header>
      <div className="card-body">
        {item.status === "unknown" ? (
          <p className="soft">
            The versions of that time were pruned. Compare with a run: it keeps its files.
          </p>
        ) : (
          <QueryResult query={comparison}>{(data) => <Diff item={data} />}</QueryResult>
        )}
      </div>
    </article>
  );
}

function Diff({ item }: { item: ComparedPath | null }) {
  if (item?.diff === null) return <p className="soft">The files are too large for a diff.</p>;
  return (
    <>
      <UnifiedDiff text={item?.diff ?? ""} />
      {item?.diffTruncated && <p className="faint">The diff is longer than shown here.</p>}
    </>
  );
}

const describe = (file: ComparedPath["left"]) =>
  file === null ? "absent" : `v${file.version}, ${layerOf(file.source).name}`;

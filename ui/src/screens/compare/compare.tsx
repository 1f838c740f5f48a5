// Compares two agents, templates, runs, workspaces or versions, file by file.

import { useInfiniteQuery } from "@tanstack/react-query";
import { ArrowLeftRight, GitCompare } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { comparisonQuery } from "../../api/compare";
import { Button } from "../../components/button";
import { EmptyState, QueryResult } from "../../components/query-states";
import { Screen } from "../../components/screen";
import { ComparisonResult } from "./comparison-result";
import { formatReference, isComplete, parseReference } from "./references";
import { SideForm } from "./side-form";

const DIFFERENT = "changed,only-left,only-right,unknown";

export default function CompareScreen() {
  const [params] = useSearchParams();
  const left = params.get("left") ?? "";
  const right = params.get("right") ?? "";
  return (
    <Screen
      title="Compare"
      subtitle="Two agents, templates, runs or versions, now or at a time, file by file."
    >
      <SidesForm key={`${left} ${right}`} left={left} right={right} />
      {left && right ? (
        <Result left={left} right={right} />
      ) : (
        <EmptyState icon={GitCompare} title="Choose two sides">
          <p>You can also start from a run, an agent, a template or the history of a file.</p>
        </EmptyState>
      )}
    </Screen>
  );
}

function SidesForm({ left, right }: { left: string; right: string }) {
  const [, setParams] = useSearchParams();
  const [leftSide, setLeft] = useState(parseReference(left));
  const [rightSide, setRight] = useState(parseReference(right));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setParams((params) => {
      params.set("left", formatReference(leftSide));
      params.set("right", formatReference(rightSide));
      params.delete("file");
      return params;
    });
  };
  const swap = () => {
    setLeft(rightSide);
    setRight(leftSide);
  };
  return (
    <form className="stack" aria-label="Sides" onSubmit={submit}>
      <div className="compare-sides">
        <SideForm label="Left" value={leftSide} onChange={setLeft} />
        <SideForm label="Right" value={rightSide} onChange={setRight} />
      </div>
      <div className="row wrap">
        <Button
          kind="primary"
          type="submit"
          icon={GitCompare}
          disabled={!isComplete(leftSide) || !isComplete(rightSide)}
        >
          Compare
        </Button>
        <Button icon={ArrowLeftRight} onClick={swap}>
          Swap
        </Button>
      </div>
    </form>
  );
}

function Result({ left, right }: { left: string; right: string }) {
  const [params, setParams] = useSearchParams();
  const raw = params.get("raw") === "1";
  const withSame = params.get("same") === "1";
  const sides = { left, right, raw };
  const query = useInfiniteQuery(
    comparisonQuery(sides, withSame ? `same,${DIFFERENT}` : DIFFERENT),
  );
  const toggle = (name: string, isOn: boolean) =>
    setParams(
      (params) => {
        if (isOn) params.set(name, "1");
        else params.delete(name);
        return params;
      },
      { replace: true, preventScrollReset: true },
    );
  return (
    <section className="stack" aria-label="Result">
      <div className="row wrap">
        <label className="check">
          <input
            type="checkbox"
            checked={raw}
            onChange={(event) => toggle("raw", event.target.checked)}
          />
          Ignore placeholder values
        </label>
        <label className="check">
          <input
            type="checkbox"
            checked={withSame}
            onChange={(event) => toggle("same", event.target.checked)}
          />
          Show equal files
        </label>
      </div>
      <QueryResult query={query}>
        {({ pages }) => (
          <>
            <ComparisonResult pages={pages} sides={sides} />
            {query.hasNextPage && (
              <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                Load more
              </Button>
            )}
          </>
        )}
      </QueryResult>
    </section>
  );
}

// What is looked for, as the address says it, so that it can be kept and handed on.

import { useEffect, useRef, useState } from "react";
import { useNavigation, useSearchParams } from "react-router";
import { COLUMNS, type Column, type Wanted } from "./agent-filters";

const PAUSE = 300;

function read(params: URLSearchParams): Wanted {
  const sort = params.get("sort") as Column;
  const kind = params.get("kind");
  return {
    text: params.get("q") ?? "",
    template: params.get("template") ?? "",
    kind: kind === "shared" || kind === "private" ? kind : "",
    updates: params.has("updates"),
    sort: COLUMNS.includes(sort) ? sort : "name",
    down: params.has("down"),
  };
}

function written({ text, template, kind, updates, sort, down }: Wanted): URLSearchParams {
  const said = {
    q: text,
    template,
    kind,
    updates: updates ? "1" : "",
    sort: sort === "name" ? "" : sort,
    down: down ? "1" : "",
  };
  return new URLSearchParams(Object.entries(said).filter(([, value]) => value));
}

/** The address follows what is typed after a moment; what is typed waits for nothing. */
export function useWanted(): [Wanted, (some: Partial<Wanted>) => void] {
  const [params, setParams] = useSearchParams();
  const [wanted, setWanted] = useState(() => read(params));
  const address = params.toString();
  const ours = useRef(address);
  const leaving = useNavigation().state !== "idle";
  const say = useRef({ setParams, leaving });
  say.current = { setParams, leaving };
  useEffect(() => {
    const said = written(wanted).toString();
    if (said === ours.current) return;
    const timer = setTimeout(() => {
      if (say.current.leaving) return;
      ours.current = said;
      say.current.setParams(new URLSearchParams(said), { replace: true });
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [wanted]);
  useEffect(() => {
    if (address === ours.current) return;
    ours.current = address;
    setWanted(read(new URLSearchParams(address)));
  }, [address]);
  return [wanted, (some) => setWanted((before) => ({ ...before, ...some }))];
}

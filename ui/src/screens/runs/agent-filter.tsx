// Picks an agent by the beginning of its name; what is picked stands in the address.

import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { agentsNamedQuery } from "../../api/runs";
import { Button } from "../../components/button";
import { plain } from "../../components/escape-text";

export function AgentFilter() {
  const [params, setParams] = useSearchParams();
  const chosen = params.get("agent");
  const choose = (slug: string | null) =>
    setParams((now) => {
      if (slug) now.set("agent", slug);
      else now.delete("agent");
      return now;
    });
  if (!chosen) return <Picker onChoose={choose} />;
  return (
    <span className="badge accent chosen-agent">
      <span className="cut bidi">Agent: {plain(chosen, 60)}</span>
      <Button
        kind="plain"
        small
        icon={X}
        aria-label="Runs of all agents"
        onClick={() => choose(null)}
      />
    </span>
  );
}

function Picker({ onChoose }: { onChoose: (slug: string) => void }) {
  const id = useId();
  const [text, setText] = useState("");
  const { data } = useQuery(agentsNamedQuery(text.trim()));
  const meant = data?.find(({ slug }) => slug === text.trim())?.slug;
  const told = useRef(onChoose);
  told.current = onChoose;
  useEffect(() => {
    if (meant) told.current(meant);
  }, [meant]);
  return (
    <>
      <input
        className="input filter"
        aria-label="Agent"
        placeholder="Any agent"
        list={id}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && data?.[0] && text.trim()) onChoose(data[0].slug);
        }}
      />
      <datalist id={id}>
        {data?.map(({ id, slug, name }) => (
          <option key={id} value={slug}>
            {plain(name, 80)}
          </option>
        ))}
      </datalist>
    </>
  );
}

// Filter by agent, kept in the URL.

import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { findAgentsQuery } from "../../api/runs";
import { Button } from "../../components/button";
import { escapeText } from "../../components/escape-text";

export function AgentFilter() {
  const [params, setParams] = useSearchParams();
  const selected = params.get("agent");
  const select = (slug: string | null) =>
    setParams((params) => {
      if (slug) params.set("agent", slug);
      else params.delete("agent");
      return params;
    });
  if (!selected) return <AgentInput onSelect={select} />;
  return (
    <span className="badge accent selected-agent">
      <span className="truncate bidi">Agent: {escapeText(selected, 60)}</span>
      <Button
        kind="plain"
        small
        icon={X}
        aria-label="Clear agent filter"
        onClick={() => select(null)}
      />
    </span>
  );
}

function AgentInput({ onSelect }: { onSelect: (slug: string) => void }) {
  const id = useId();
  const [text, setText] = useState("");
  const { data } = useQuery(findAgentsQuery(text.trim()));
  const exactMatch = data?.find(({ slug }) => slug === text.trim())?.slug;
  const latestOnSelect = useRef(onSelect);
  latestOnSelect.current = onSelect;
  useEffect(() => {
    if (exactMatch) latestOnSelect.current(exactMatch);
  }, [exactMatch]);
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
          if (event.key === "Enter" && data?.[0] && text.trim()) onSelect(data[0].slug);
        }}
      />
      <datalist id={id}>
        {data?.map(({ id, slug, name }) => (
          <option key={id} value={slug}>
            {escapeText(name, 80)}
          </option>
        ))}
      </datalist>
    </>
  );
}

// One prompt: size, blocks and text.

import { useState } from "react";
import type { Block, Prompt } from "../../api/prompt";
import { CopyButton } from "../../components/copy-button";
import { BlockTable } from "./block-table";
import { ContextBar } from "./context-bar";
import { PromptText } from "./prompt-text";

interface PromptViewProps {
  prompt: Prompt;
  name: string;
  /** Maximum characters, if known. */
  charLimit?: number;
  urlOf: (block: Block) => string | null;
}

const format = (count: number) => count.toLocaleString("en");

export function PromptView({ prompt, name, charLimit, urlOf }: PromptViewProps) {
  const [selected, setSelected] = useState<string | null>(null);
  const toggle = (key: string) => setSelected(key === selected ? null : key);
  const { blocks, etag, text } = prompt;
  return (
    <div className="stack">
      <Budget prompt={prompt} name={name} charLimit={charLimit} />
      <ContextBar
        blocks={blocks}
        label={`Blocks of the ${name} prompt by tokens`}
        selected={selected}
        onSelect={toggle}
      />
      <div className="table-wrap">
        <BlockTable blocks={blocks} label={`Blocks of the ${name} prompt`} urlOf={urlOf} />
      </div>
      <div className="row">
        <h4 className="grow">Prompt text</h4>
        <CopyButton text={text} label={`Copy ${name} prompt`} />
      </div>
      {text ? (
        <PromptText prompt={prompt} label={`Text of the ${name} prompt`} selected={selected} />
      ) : (
        <p className="soft">Empty prompt: no files.</p>
      )}
      <p className="faint truncate" title={etag}>
        etag <code>{etag}</code>
      </p>
    </div>
  );
}

function Budget({
  prompt,
  name,
  charLimit,
}: Pick<PromptViewProps, "prompt" | "name" | "charLimit">) {
  const { chars, tokens, tokenizer } = prompt;
  const method = tokenizer === "estimate" ? "estimated" : tokenizer;
  return (
    <div className="stack tight">
      <p className="budget">
        <strong>{format(tokens)}</strong> tokens <span className="faint">({method})</span>
        <span className="end">
          {format(chars)}
          {charLimit !== undefined && <span className="soft"> of {format(charLimit)}</span>}{" "}
          characters
        </span>
      </p>
      {charLimit !== undefined && (
        <meter
          className="usage-meter"
          aria-label={`Characters of the ${name} prompt`}
          min={0}
          max={charLimit}
          high={charLimit * 0.9}
          value={chars}
        />
      )}
    </div>
  );
}

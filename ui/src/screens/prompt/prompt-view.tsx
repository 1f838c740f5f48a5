// One prompt: how much of its room it takes, its blocks, its text.

import { useState } from "react";
import type { Block, Prompt } from "../../api/prompt";
import { CopyButton } from "../../components/copy-button";
import { BlockTable } from "./block-table";
import { ContextBar } from "./context-bar";
import { PromptText } from "./prompt-text";

interface PromptViewProps {
  prompt: Prompt;
  name: string;
  /** How many characters there is room for, where that is known. */
  most?: number;
  to: (block: Block) => string | null;
}

const number = (count: number) => count.toLocaleString("en");

export function PromptView({ prompt, name, most, to }: PromptViewProps) {
  const [chosen, setChosen] = useState<string | null>(null);
  const choose = (key: string) => setChosen(key === chosen ? null : key);
  const { blocks, etag, text } = prompt;
  return (
    <div className="stack">
      <Budget prompt={prompt} name={name} most={most} />
      <ContextBar
        blocks={blocks}
        label={`Blocks of the ${name} prompt by tokens`}
        chosen={chosen}
        onChoose={choose}
      />
      <div className="table-wrap">
        <BlockTable blocks={blocks} label={`Blocks of the ${name} prompt`} to={to} />
      </div>
      <div className="row">
        <h4 className="grow">What the model is told</h4>
        <CopyButton text={text} label={`Copy the ${name} prompt`} />
      </div>
      {text ? (
        <PromptText prompt={prompt} label={`Text of the ${name} prompt`} chosen={chosen} />
      ) : (
        <p className="soft">Nothing: there is no file that it is made of.</p>
      )}
      <p className="faint cut" title={etag}>
        etag <code>{etag}</code>
      </p>
    </div>
  );
}

function Budget({ prompt, name, most }: Pick<PromptViewProps, "prompt" | "name" | "most">) {
  const { chars, tokens, tokenizer } = prompt;
  const counted = tokenizer === "estimate" ? "estimated" : tokenizer;
  return (
    <div className="stack tight">
      <p className="budget">
        <strong>{number(tokens)}</strong> tokens <span className="faint">({counted})</span>
        <span className="end">
          {number(chars)}
          {most !== undefined && <span className="soft"> of {number(most)}</span>} characters
        </span>
      </p>
      {most !== undefined && (
        <meter
          className="room"
          aria-label={`Characters of the ${name} prompt`}
          min={0}
          max={most}
          high={most * 0.9}
          value={chars}
        />
      )}
    </div>
  );
}

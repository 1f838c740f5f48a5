// The very text that a model is told, the block that was chosen marked in it.

import { useEffect, useMemo, useRef } from "react";
import type { Prompt } from "../../api/prompt";
import { keyOf, piecesOf } from "./block-texts";

interface PromptTextProps {
  prompt: Prompt;
  label: string;
  chosen: string | null;
}

export function PromptText({ prompt, label, chosen }: PromptTextProps) {
  const box = useRef<HTMLPreElement>(null);
  const pieces = useMemo(() => piecesOf(prompt.text, prompt.blocks), [prompt]);
  useEffect(() => {
    const marked = box.current?.querySelector<HTMLElement>("mark");
    if (!chosen || !marked || !box.current) return;
    box.current.scrollTop = marked.offsetTop - 12;
  }, [chosen]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must get into it
    <pre ref={box} className="text prompt-text" role="region" aria-label={label} tabIndex={0}>
      {pieces.map(({ block, text }, at) => {
        const key = keyOf(block);
        const gap = at < pieces.length - 1 ? "\n\n" : "";
        return key === chosen ? (
          <span key={key}>
            <mark>{text}</mark>
            {gap}
          </span>
        ) : (
          text + gap
        );
      })}
    </pre>
  );
}

// Text of a prompt with the selected block highlighted.

import { useEffect, useMemo, useRef } from "react";
import type { Prompt } from "../../api/prompt";
import { blockKey, splitPrompt } from "./block-texts";

interface PromptTextProps {
  prompt: Prompt;
  label: string;
  selected: string | null;
}

export function PromptText({ prompt, label, selected }: PromptTextProps) {
  const box = useRef<HTMLPreElement>(null);
  const texts = useMemo(() => splitPrompt(prompt.text, prompt.blocks), [prompt]);
  useEffect(() => {
    const highlighted = box.current?.querySelector<HTMLElement>("mark");
    if (!selected || !highlighted || !box.current) return;
    box.current.scrollTop = highlighted.offsetTop - 12;
  }, [selected]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable
    <pre ref={box} className="text prompt-text" role="region" aria-label={label} tabIndex={0}>
      {texts.map(({ block, text }, index) => {
        const key = blockKey(block);
        const separator = index < texts.length - 1 ? "\n\n" : "";
        return key === selected ? (
          <span key={key}>
            <mark>{text}</mark>
            {separator}
          </span>
        ) : (
          text + separator
        );
      })}
    </pre>
  );
}

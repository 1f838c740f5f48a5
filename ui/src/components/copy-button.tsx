import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { Button } from "./button";
import { toastProblem } from "./toast";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch (error) {
      toastProblem(error);
    }
  };
  return (
    <Button
      small
      kind="plain"
      icon={copied ? Check : Copy}
      aria-label={label}
      onClick={() => void copy()}
    />
  );
}

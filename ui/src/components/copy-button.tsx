import { Check, Copy } from "lucide-react";
import { useState } from "react";
import { Button } from "./button";
import { toastProblem } from "./toast";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch (error) {
      toastProblem(error);
    }
  };
  return (
    <Button
      small
      kind="plain"
      icon={done ? Check : Copy}
      aria-label={label}
      onClick={() => void copy()}
    />
  );
}

import { Button } from "./button";
import { CopyButton } from "./copy-button";
import { Dialog } from "./dialog";

interface OneTimeSecretProps {
  title: string;
  label: string;
  text: string;
  onClose: () => void;
}

/** Shows a secret that cannot be read again. */
export function OneTimeSecretDialog({ title, label, text, onClose }: OneTimeSecretProps) {
  const footer = (
    <Button kind="primary" onClick={onClose}>
      Done
    </Button>
  );
  return (
    <Dialog title={title} onClose={onClose} footer={footer}>
      <p>Copy it now. You will not see it again.</p>
      <div className="one-time-secret">
        <output aria-label={label} className="mono">
          {text}
        </output>
        <CopyButton text={text} label={`Copy ${label}`} />
      </div>
    </Dialog>
  );
}

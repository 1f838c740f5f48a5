import { Button } from "./button";
import { CopyButton } from "./copy-button";
import { Dialog } from "./dialog";

interface ShownOnceProps {
  title: string;
  what: string;
  text: string;
  onClose: () => void;
}

/** Something that is told this once and never again. */
export function ShownOnce({ title, what, text, onClose }: ShownOnceProps) {
  const foot = (
    <Button kind="primary" onClick={onClose}>
      I have kept it
    </Button>
  );
  return (
    <Dialog title={title} onClose={onClose} foot={foot}>
      <p>{what} is shown this once. Nobody can read it again, you neither.</p>
      <div className="shown-once">
        <output aria-label={what} className="mono">
          {text}
        </output>
        <CopyButton text={text} label={`Copy ${what.toLowerCase()}`} />
      </div>
    </Dialog>
  );
}

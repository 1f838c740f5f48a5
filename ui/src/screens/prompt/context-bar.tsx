// The context bar: every block of a prompt as wide as its share of the tokens, coloured by layer.

import type { Block } from "../../api/prompt";
import { plain } from "../../components/escape-text";
import { keyOf } from "./block-texts";
import { layerOf } from "./layer";

interface ContextBarProps {
  blocks: readonly Block[];
  label: string;
  chosen: string | null;
  onChoose: (key: string) => void;
}

const told = (block: Block, all: number) => {
  const share = Math.round((100 * block.tokens) / Math.max(all, 1));
  const version = block.version === null ? "" : `, version ${block.version}`;
  return `${plain(block.name, 80)}: ${block.tokens.toLocaleString("en")} tokens, ${share}%, from ${layerOf(block.source).name}${version}`;
};

export function ContextBar({ blocks, label, chosen, onChoose }: ContextBarProps) {
  const shown = blocks.filter((block) => block.tokens > 0);
  const all = shown.reduce((sum, block) => sum + block.tokens, 0);
  return (
    <div className="context-bar" role="group" aria-label={label}>
      {shown.map((block) => (
        <button
          key={keyOf(block)}
          type="button"
          className={`context-block layer-${layerOf(block.source).kind}`}
          style={{ flexGrow: block.tokens }}
          title={told(block, all)}
          aria-label={told(block, all)}
          aria-pressed={chosen === keyOf(block)}
          onClick={() => onChoose(keyOf(block))}
        >
          <span className="cut">{block.tokens * 9 > all ? plain(block.name, 40) : ""}</span>
        </button>
      ))}
    </div>
  );
}

const LEGEND = ["agent-override", "template", "defaults", "workspace"].map(layerOf);

export function LayerLegend() {
  return (
    <ul className="row wrap layer-legend" aria-label="Layers">
      {LEGEND.map(({ kind, name }) => (
        <li key={kind} className="row">
          <span className={`swatch layer-${kind}`} aria-hidden />
          {name}
        </li>
      ))}
    </ul>
  );
}

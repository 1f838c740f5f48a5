// Bar of a prompt's blocks: width is the share of tokens, color the layer.

import type { Block } from "../../api/prompt";
import { escapeText } from "../../components/escape-text";
import { blockKey } from "./block-texts";
import { layerOf } from "./layer";

interface ContextBarProps {
  blocks: readonly Block[];
  label: string;
  selected: string | null;
  onSelect: (key: string) => void;
}

const describeBlock = (block: Block, total: number) => {
  const share = Math.round((100 * block.tokens) / Math.max(total, 1));
  const version = block.version === null ? "" : `, version ${block.version}`;
  return `${escapeText(block.name, 80)}: ${block.tokens.toLocaleString("en")} tokens, ${share}%, from ${layerOf(block.source).name}${version}`;
};

export function ContextBar({ blocks, label, selected, onSelect }: ContextBarProps) {
  const visible = blocks.filter((block) => block.tokens > 0);
  const total = visible.reduce((sum, block) => sum + block.tokens, 0);
  return (
    <div className="context-bar" role="group" aria-label={label}>
      {visible.map((block) => (
        <button
          key={blockKey(block)}
          type="button"
          className={`context-block layer-${layerOf(block.source).kind}`}
          style={{ flexGrow: block.tokens }}
          title={describeBlock(block, total)}
          aria-label={describeBlock(block, total)}
          aria-pressed={selected === blockKey(block)}
          onClick={() => onSelect(blockKey(block))}
        >
          <span className="truncate">
            {block.tokens * 9 > total ? escapeText(block.name, 40) : ""}
          </span>
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

// Layers that a file can come from, with their labels.

export type LayerKind = "agent" | "template" | "defaults" | "workspace" | "none";

export interface Layer {
  kind: LayerKind;
  name: string;
  /** Whether the reviewed version is served. */
  isPinned?: boolean;
}

const LAYERS: Record<string, Layer> = {
  "agent-override": { kind: "agent", name: "agent" },
  "agent-override-pinned": { kind: "agent", name: "agent", isPinned: true },
  template: { kind: "template", name: "template" },
  "template-pinned": { kind: "template", name: "template", isPinned: true },
  defaults: { kind: "defaults", name: "defaults" },
  workspace: { kind: "workspace", name: "workspace" },
};

/** Layer of a wire `source`; text that is no file has kind "none". */
export function layerOf(source: string | null | undefined): Layer {
  if (!source) return { kind: "none", name: "Carrel" };
  return LAYERS[source] ?? { kind: "none", name: source };
}

// Which layer a text comes from, in the words and the colours of the desk.

export type LayerKind = "agent" | "template" | "defaults" | "workspace" | "none";

export interface Layer {
  kind: LayerKind;
  name: string;
  /** Whether it stays as it was reviewed. */
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

/** What the server calls a source, as a layer; what is no file comes from none. */
export function layerOf(source: string | null | undefined): Layer {
  if (!source) return { kind: "none", name: "Carrel" };
  return LAYERS[source] ?? { kind: "none", name: source };
}

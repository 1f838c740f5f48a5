// Isolation tiers of the provider `local`, and what they enforce.

export interface IsolationTier {
  name: string;
  summary: string;
  isIsolated: boolean;
  /** Resources, and how the tier limits them. */
  limits: [resource: string, limit: string][];
}

const RESOURCE_LIMITS: [string, string] = [
  "Time, memory, processes, output",
  "Limited per command",
];

const bubblewrap = (tier: string): IsolationTier => ({
  name: tier,
  summary: "Commands see only system programs, their workspace, and a private home and /tmp.",
  isIsolated: true,
  limits: [
    ["Host files", "Hidden"],
    [
      "Network",
      tier.includes("network namespace")
        ? "None"
        : "None, unless enabled in the sandbox and allowed by the server",
    ],
    RESOURCE_LIMITS,
    ["Persistent sandboxes", "Supported, by one server process"],
  ],
});

const TIERS: Record<string, IsolationTier> = {
  landlock: {
    name: "landlock",
    summary: "Commands cannot open host files or sockets, but can see which paths exist.",
    isIsolated: true,
    limits: [
      ["Host files", "Not readable"],
      ["Network", "None; sandboxes with network access are refused"],
      RESOURCE_LIMITS,
      ["Persistent sandboxes", "Not supported"],
    ],
  },
  none: {
    name: "none",
    summary: "No isolation is available, so commands are refused. Run `carrel doctor` for details.",
    isIsolated: false,
    limits: [["Commands", "Refused"]],
  },
  untested: {
    name: "untested",
    summary: "Isolation is tested when the server starts or the first command runs.",
    isIsolated: false,
    limits: [],
  },
};

export const isolationTierOf = (tier: string): IsolationTier => TIERS[tier] ?? bubblewrap(tier);

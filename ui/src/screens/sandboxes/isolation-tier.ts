// What keeps commands of the provider `local` apart on this server, and what that can enforce.

export interface IsolationTier {
  name: string;
  summary: string;
  isIsolated: boolean;
  /** What a sandbox may ask for here, and whether it gets it. */
  limits: [what: string, how: string][];
}

const RESOURCE_LIMITS: [string, string] = [
  "Time, memory, processes, output",
  "Bounded for all of a command",
];

const bubblewrap = (tier: string): IsolationTier => ({
  name: tier,
  summary:
    "A command sees the system’s programs, its workspace, a home and a /tmp of its own, and nothing else.",
  isIsolated: true,
  limits: [
    ["Files of the machine", "Out of sight"],
    [
      "Network",
      tier.includes("network namespace")
        ? "None: it can open no socket"
        : "None, unless the sandbox asks for it and the server allows it",
    ],
    RESOURCE_LIMITS,
    ["Kept between commands", "Yes, by one server process"],
  ],
});

const TIERS: Record<string, IsolationTier> = {
  landlock: {
    name: "landlock",
    summary:
      "A command can open no file of the machine and no socket, but can find out which paths exist.",
    isIsolated: true,
    limits: [
      ["Files of the machine", "Cannot be opened"],
      ["Network", "None; a sandbox that asks for it is refused"],
      RESOURCE_LIMITS,
      ["Kept between commands", "No; a sandbox that asks for it is refused"],
    ],
  },
  none: {
    name: "none",
    summary:
      "Nothing here keeps commands apart, so every command is refused. `carrel doctor` says what is missing.",
    isIsolated: false,
    limits: [["Commands", "Refused"]],
  },
  untested: {
    name: "untested",
    summary: "It is tried when the first command runs, or when a server has just started.",
    isIsolated: false,
    limits: [],
  },
};

export const isolationTierOf = (tier: string): IsolationTier => TIERS[tier] ?? bubblewrap(tier);

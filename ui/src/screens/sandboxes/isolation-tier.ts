// What keeps commands of the provider `local` apart on this server, and what that can enforce.

export interface Tier {
  name: string;
  says: string;
  strong: boolean;
  /** What a sandbox may ask for here, and whether it gets it. */
  enforces: [what: string, how: string][];
}

const BOUNDS: [string, string] = [
  "Time, memory, processes, output",
  "Bounded for all of a command",
];

const bubblewrap = (tier: string): Tier => ({
  name: tier,
  says: "A command sees the system’s programs, its workspace, a home and a /tmp of its own, and nothing else.",
  strong: true,
  enforces: [
    ["Files of the machine", "Out of sight"],
    [
      "Network",
      tier.includes("network namespace")
        ? "None: it can open no socket"
        : "None, unless the sandbox asks for it and the server allows it",
    ],
    BOUNDS,
    ["Kept between commands", "Yes, by one server process"],
  ],
});

const TIERS: Record<string, Tier> = {
  landlock: {
    name: "landlock",
    says: "A command can open no file of the machine and no socket, but can find out which paths exist.",
    strong: true,
    enforces: [
      ["Files of the machine", "Cannot be opened"],
      ["Network", "None; a sandbox that asks for it is refused"],
      BOUNDS,
      ["Kept between commands", "No; a sandbox that asks for it is refused"],
    ],
  },
  none: {
    name: "none",
    says: "Nothing here keeps commands apart, so every command is refused. `carrel doctor` says what is missing.",
    strong: false,
    enforces: [["Commands", "Refused"]],
  },
  untested: {
    name: "untested",
    says: "It is tried when the first command runs, or when a server has just started.",
    strong: false,
    enforces: [],
  },
};

export const tierOf = (tier: string): Tier => TIERS[tier] ?? bubblewrap(tier);

// Texts for the reasons why a memory was not promoted.

export const REJECTION_REASONS: Record<string, string> = {
  hits: "with too few recalls",
  queries: "with too few different queries",
  days: "on too few days",
  score: "with a low score",
  said: "already in MEMORY.md",
  limit: "over the limit per dream",
  room: "without space in MEMORY.md",
  evicted: "replaced in MEMORY.md by stronger ones",
  shared: "from a shared session",
};

// Why a memory is not promoted, in a few words.

export const REJECTION_REASONS: Record<string, string> = {
  hits: "came up too seldom",
  queries: "for too few different questions",
  days: "on too few days",
  score: "scored too low",
  said: "said by MEMORY.md already",
  limit: "behind others that score higher",
  room: "without room in MEMORY.md",
  shared: "told in a shared session",
};

// What a memory must have to be promoted, as this agent's config has it.

import type { Gates } from "../../api/agent-config";

export function GateList({ gates }: { gates: Gates }) {
  const said = [
    `${gates.minRecallCount} recalls`,
    `${gates.minUniqueQueries} different questions`,
    `${gates.minUniqueDays} ${gates.minUniqueDays === 1 ? "day" : "days"}`,
    `a score of ${gates.minScore}`,
  ];
  return (
    <p className="soft gates">
      Promoted is what has at least {said.slice(0, -1).join(", ")} and {said.at(-1)}, at most{" "}
      {gates.maxPromotionsPerSweep} at a time.{" "}
      {gates.enabled ? "It dreams by itself." : "It dreams only when told to."}{" "}
      {gates.review && "Somebody looks at every dream before it lands."}
    </p>
  );
}

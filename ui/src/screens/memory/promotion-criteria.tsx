// What a memory must have to be promoted, as this agent's config has it.

import type { PromotionCriteria } from "../../api/agent-config";

export function CriteriaText({ criteria }: { criteria: PromotionCriteria }) {
  const conditions = [
    `${criteria.minRecallCount} recalls`,
    `${criteria.minUniqueQueries} different questions`,
    `${criteria.minUniqueDays} ${criteria.minUniqueDays === 1 ? "day" : "days"}`,
    `a score of ${criteria.minScore}`,
  ];
  return (
    <p className="soft gates">
      Promoted is what has at least {conditions.slice(0, -1).join(", ")} and {conditions.at(-1)}, at
      most {criteria.maxPromotionsPerSweep} at a time.{" "}
      {criteria.enabled ? "It dreams by itself." : "It dreams only when told to."}{" "}
      {criteria.review && "Somebody looks at every dream before it lands."}
    </p>
  );
}

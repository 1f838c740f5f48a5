// Promotion criteria of an agent's config, as text.

import type { PromotionCriteria } from "../../api/agent-config";

export function CriteriaText({ criteria }: { criteria: PromotionCriteria }) {
  const conditions = [
    `${criteria.minRecallCount} recalls`,
    `${criteria.minUniqueQueries} different queries`,
    `${criteria.minUniqueDays} ${criteria.minUniqueDays === 1 ? "day" : "days"}`,
    `a score of ${criteria.minScore}`,
  ];
  return (
    <p className="soft criteria">
      Promotion needs at least {conditions.slice(0, -1).join(", ")} and {conditions.at(-1)}; at most{" "}
      {criteria.maxPromotionsPerSweep} per dream.{" "}
      {criteria.enabled ? "Dreams run on schedule." : "Scheduled dreams are off."}{" "}
      {criteria.review && "Dreams need review."}
    </p>
  );
}

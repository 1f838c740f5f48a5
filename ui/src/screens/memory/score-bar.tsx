// A score from 0 to 1, with an optional threshold.

interface ScoreBarProps {
  score: number;
  threshold?: number;
  /** Rejected for any reason; a score above the threshold may not be enough. */
  isRejected?: boolean;
  label?: string;
}

export function ScoreBar({ score, threshold, isRejected, label = "Score" }: ScoreBarProps) {
  const description = `${label} ${score.toFixed(2)}${threshold === undefined ? "" : `, minimum ${threshold}`}`;
  const className = isRejected ? "fails" : "passes";
  return (
    <span className="score" role="img" aria-label={description} title={description}>
      <span className="score-number">{score.toFixed(2)}</span>
      <span className="score-track">
        <span
          className={`score-filled ${className}`}
          style={{ width: `${100 * Math.min(1, Math.max(0, score))}%` }}
        />
        {threshold !== undefined && (
          <span className="score-threshold" style={{ left: `${100 * threshold}%` }} />
        )}
      </span>
    </span>
  );
}

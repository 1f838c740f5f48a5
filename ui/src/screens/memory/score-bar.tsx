// A score from 0 to 1, and the gate that it has to pass where there is one.

interface ScoreBarProps {
  score: number;
  threshold?: number;
  /** For whatever reason it was: a score that passes the gate is not enough. */
  isRejected?: boolean;
  label?: string;
}

export function ScoreBar({ score, threshold, isRejected, label = "Score" }: ScoreBarProps) {
  const description = `${label} ${score.toFixed(2)}${threshold === undefined ? "" : `, ${threshold} is needed`}`;
  const className = isRejected ? "fails" : "passes";
  return (
    <span className="score" role="img" aria-label={description} title={description}>
      <span className="score-number">{score.toFixed(2)}</span>
      <span className="score-room">
        <span
          className={`score-filled ${className}`}
          style={{ width: `${100 * Math.min(1, Math.max(0, score))}%` }}
        />
        {threshold !== undefined && (
          <span className="score-gate" style={{ left: `${100 * threshold}%` }} />
        )}
      </span>
    </span>
  );
}

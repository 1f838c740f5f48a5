// A score from 0 to 1, and the gate that it has to pass where there is one.

interface ScoreBarProps {
  score: number;
  gate?: number;
  /** For whatever reason it was: a score that passes the gate is not enough. */
  isRejected?: boolean;
  label?: string;
}

export function ScoreBar({ score, gate, isRejected, label = "Score" }: ScoreBarProps) {
  const said = `${label} ${score.toFixed(2)}${gate === undefined ? "" : `, ${gate} is needed`}`;
  const look = isRejected ? "fails" : "passes";
  return (
    <span className="score" role="img" aria-label={said} title={said}>
      <span className="score-number">{score.toFixed(2)}</span>
      <span className="score-room">
        <span
          className={`score-filled ${look}`}
          style={{ width: `${100 * Math.min(1, Math.max(0, score))}%` }}
        />
        {gate !== undefined && <span className="score-gate" style={{ left: `${100 * gate}%` }} />}
      </span>
    </span>
  );
}

/** Short duration text, such as "42 s". */

export function formatDuration(
  from: string,
  to: string | null | undefined,
  now = Date.now(),
): string {
  const end = to ? new Date(to).getTime() : now;
  const seconds = Math.max(0, (end - new Date(from).getTime()) / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 5940) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_000) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

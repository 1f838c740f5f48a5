// Days in UTC, as the inputs of dates have them.

const DAY_MS = 86_400_000;

export const startOfDay = (day: string) => `${day}T00:00:00Z`;

export const startOfNextDay = (day: string) =>
  new Date(Date.parse(startOfDay(day)) + DAY_MS).toISOString();

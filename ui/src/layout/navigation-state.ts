// Whether the user is leaving a screen, according to the router itself. The state of
// `useNavigation` arrives with a later render, and a change of the URL before it would cancel the
// navigation.

import type { DataRouter } from "react-router";

let router: Pick<DataRouter, "state"> | undefined;

export function setRouter(value: Pick<DataRouter, "state">) {
  router = value;
}

/** Whether the screen at this path is being left or was left. */
export function isLeaving(pathname: string): boolean {
  if (router === undefined) return false;
  const { navigation, location } = router.state;
  return navigation.state !== "idle" || location.pathname !== pathname;
}

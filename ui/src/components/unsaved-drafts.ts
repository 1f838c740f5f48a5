// Counts unsaved drafts, so that the page stays open while there are any.

let count = 0;

export const hasDrafts = () => count > 0;

/** Registers a draft. Returns a function that unregisters it. */
export function registerDraft(): () => void {
  count += 1;
  return () => {
    count -= 1;
  };
}

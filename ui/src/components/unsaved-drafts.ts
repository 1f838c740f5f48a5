// How many texts are under a pen and not saved, for whoever would take the page from under them.

let count = 0;

export const hasDrafts = () => count > 0;

/** Counts one until the answer is called. */
export function holdDraft(): () => void {
  count += 1;
  return () => {
    count -= 1;
  };
}

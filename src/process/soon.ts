/** How long the database may take to show that it can be written. */
const PROBE_MS = 1_000

/** Whether something is so; one that takes long to tell is not. */
export function soon(isSo: Promise<boolean>): Promise<boolean> {
  return Promise.race([isSo, new Promise<boolean>((resolve) => setTimeout(resolve, PROBE_MS, false).unref())])
}

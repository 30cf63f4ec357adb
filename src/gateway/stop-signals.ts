import process from 'node:process'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
/** Milliseconds within which a second signal counts as a duplicate of the first. */
const DUPLICATE_MS = 1_000

/**
 * Resolves to the first signal to stop. A second one exits at once; open calls are settled at the next start.
 * A single keystroke, or a signal to a process group, arrives twice if npm forwards it; such a duplicate is
 * ignored.
 */
export function waitForStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstMs: number | undefined
    // The listeners stay during the whole stop, because a duplicate without a listener would kill the
    // process.
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (firstMs === undefined) {
          firstMs = performance.now()
          resolve(signal)
        } else if (performance.now() - firstMs > DUPLICATE_MS) process.exit(1)
      })
    }
  })
}

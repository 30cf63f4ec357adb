import process from 'node:process'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
/** Milliseconds within which a second signal counts as a duplicate of the first. */
const DUPLICATE_MS = 1_000

/**
 * Resolves to the first SIGTERM or SIGINT. A second one ends the process at once; open calls are charged at
 * the next start. If npm forwards a signal, a single keystroke arrives twice; such a duplicate is ignored.
 */
export function waitForStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let firstMs: number | undefined
    // The listeners stay until the end, because without one a duplicate signal would kill the process.
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

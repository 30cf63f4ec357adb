/**
 * Joins calls of `work`: at most one run is under way, and all calls during it share the next one. So each
 * call is answered by a run that began after it.
 */
export function joined(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const start = (): Promise<void> => {
    next = undefined
    running = work().finally(() => {
      running = undefined
    })
    return running
  }
  return () => {
    if (!running) return start()
    return (next ??= running.then(start, start))
  }
}

/** Waits for a promise that others wait for too, until the signal is aborted. */
export function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  if (signal.aborted) {
    // Without a reader its failure would end the process.
    promise.catch(() => {})
    return Promise.reject(signal.reason as Error)
  }
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', onAbort)
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', onAbort))
}

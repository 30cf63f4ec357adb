/** Resolves like `response`, but rejects after `ms` milliseconds. */
export async function withTimeout<Response>(response: Promise<Response>, ms: number): Promise<Response> {
  const { promise, reject } = Promise.withResolvers<never>()
  const late = new Error(`no response within ${ms} ms`)
  // If the event loop was blocked, the response may have arrived without being read, so it gets one more
  // turn.
  const timer = setTimeout(() => setImmediate(() => reject(late)), ms).unref()
  try {
    return await Promise.race([response, promise])
  } finally {
    clearTimeout(timer)
    response.catch(() => {})
  }
}

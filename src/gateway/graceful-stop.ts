/** How long the settlement of broken-off calls may take. */
const SETTLING_MS = 5_000

/** Parts of the gateway that a graceful stop ends, in the order of their use. */
interface StoppingParts {
  /** Longest time that running calls may take to end. */
  readonly timeoutMs: number
  /** Tells readiness checks and clients that the process goes away. */
  beginDraining(): void
  /** Ends the listening; resolves when no request can arrive any more, or after that time. */
  shut(atMostMs: number): Promise<void>
  /** Refuses requests that arrive on open connections all the same. */
  refuseRequests(): void
  openExchanges(): number
  /** Breaks off the calls that are still running. */
  readonly relay: { stop(): void }
  readonly ledger: { readonly unresolved: number; stopRetrying(): void }
}

/**
 * Stops serving after SIGTERM or SIGINT: ends the listening, lets running calls end, breaks off the rest and
 * settles them. Resolves to the number of calls that could not be settled. `docs/operations.md: Stopping`.
 */
export async function gracefulStop(parts: StoppingParts): Promise<number> {
  const { timeoutMs, relay, ledger } = parts
  parts.beginDraining()
  const untilMs = performance.now() + timeoutMs
  await parts.shut(timeoutMs)
  parts.refuseRequests()
  await until(() => parts.openExchanges() === 0, untilMs - performance.now())
  relay.stop()
  await until(() => parts.openExchanges() === 0 && ledger.unresolved === 0, SETTLING_MS)
  const unresolved = ledger.unresolved
  ledger.stopRetrying()
  return unresolved
}

async function until(isSo: () => boolean, limitMs: number): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!isSo() && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 10))
}

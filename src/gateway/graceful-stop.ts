/** Maximum wait in milliseconds until aborted calls are settled. */
const SETTLING_MS = 5_000

/** The steps of a graceful stop, in this order, and what they need. */
interface StoppingInputs {
  /** Maximum wait in milliseconds for running calls to end. */
  readonly timeoutMs: number
  /** Makes readiness checks and responses report that the gateway is stopping. */
  beginDraining(): void
  /**
   * Stops listening. Resolves when no request can arrive any more, but after `atMostMs` milliseconds at the
   * latest.
   */
  shut(atMostMs: number): Promise<void>
  /** Refuses requests that still arrive on open connections. */
  refuseRequests(): void
  openExchanges(): number
  /** Aborts running calls. */
  readonly relay: { stop(): void }
  readonly ledger: { readonly unresolved: number; stopRetrying(): void }
}

/**
 * Ends the gateway after SIGTERM or SIGINT: stops listening, waits for running calls, aborts the remaining
 * ones and settles them. Resolves to the number of calls that could not be settled. `docs/operations.md:
 * Stopping`.
 */
export async function gracefulStop(services: StoppingInputs): Promise<number> {
  const { timeoutMs, relay, ledger } = services
  services.beginDraining()
  const untilMs = performance.now() + timeoutMs
  await services.shut(timeoutMs)
  services.refuseRequests()
  await until(() => services.openExchanges() === 0, untilMs - performance.now())
  relay.stop()
  await until(() => services.openExchanges() === 0 && ledger.unresolved === 0, SETTLING_MS)
  const unresolved = ledger.unresolved
  ledger.stopRetrying()
  return unresolved
}

async function until(isSo: () => boolean, limitMs: number): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!isSo() && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 10))
}

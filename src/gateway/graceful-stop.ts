/** Maximum time for settling calls that were aborted. */
const SETTLING_MS = 5_000

/** Parts of the gateway that a graceful stop ends, in the order in which it uses them. */
interface StoppingInputs {
  /** Maximum time that running calls may take to end. */
  readonly timeoutMs: number
  /** Reports to readiness checks and clients that the process is stopping. */
  beginDraining(): void
  /** Stops listening; resolves when no request can arrive any more, or after the given time. */
  shut(atMostMs: number): Promise<void>
  /** Refuses requests that still arrive on open connections. */
  refuseRequests(): void
  openExchanges(): number
  /** Aborts the calls that are still running. */
  readonly relay: { stop(): void }
  readonly ledger: { readonly unresolved: number; stopRetrying(): void }
}

/**
 * Stops serving after SIGTERM or SIGINT: stops listening, lets running calls end, aborts the others and
 * settles them. Resolves to the number of calls that could not be settled. `docs/operations.md: Stopping`.
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

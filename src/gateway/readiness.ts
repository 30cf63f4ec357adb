import type { Readiness } from '../api/endpoint.ts'
import type { OpenedLedger } from './open-ledger.ts'

/** Milliseconds within which the database must prove that it can be written. */
const PROBE_MS = 1_000

/** Parts that determine whether calls are accepted. */
interface ReadinessInputs {
  readonly isDraining: () => boolean
  /** Resolves once everything that calls need is loaded. */
  readonly loaded: Promise<unknown>
  /** Reports whether calls can be charged now. */
  readonly accounts: Pick<OpenedLedger, 'isReady'>
  /** Whether a helper thread is missing. */
  readonly isDegraded: () => boolean
}

/**
 * Returns a function that checks whether calls are accepted. A check that takes too long counts as failed.
 */
export function readinessOf(services: ReadinessInputs): () => Promise<Readiness> {
  const { isDraining, loaded, accounts, isDegraded } = services
  return async () => {
    if (isDraining()) return 'stopping'
    if (!(await soon(loaded.then(() => true)))) return 'starting'
    if (!(await soon(accounts.isReady()))) return 'storage'
    return isDegraded() ? 'degraded' : 'ready'
  }
}

function soon(isSo: Promise<boolean>): Promise<boolean> {
  return Promise.race([isSo, new Promise<boolean>((resolve) => setTimeout(resolve, PROBE_MS, false).unref())])
}

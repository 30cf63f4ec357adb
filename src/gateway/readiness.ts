import type { Readiness } from '../api/endpoint.ts'
import type { OpenedLedger } from './opened-ledger.ts'

/** How long the database may take to show that it can be written. */
const PROBE_MS = 1_000

/** Parts that tell whether calls are accepted. */
interface ReadinessParts {
  readonly isDraining: () => boolean
  /** Resolves once everything is loaded that calls need. */
  readonly loaded: Promise<unknown>
  /** Tell whether calls can be charged at this moment. */
  readonly accounts: Pick<OpenedLedger, 'isReady'>
  /** Whether a worker or a helper thread is missing. */
  readonly isDegraded: () => boolean
}

/** Finds out whether calls are accepted; a part that takes long to tell is not ready. */
export function readinessOf(parts: ReadinessParts): () => Promise<Readiness> {
  const { isDraining, loaded, accounts, isDegraded } = parts
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

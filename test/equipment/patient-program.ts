import { type PatchedCopy, patchedProgram } from './patched-copy.ts'

/**
 * The program with one difference: it waits for Redis and for PostgreSQL connections however slow this
 * machine is. It is for tests that are not about slow servers, and whose figures are only right while the
 * servers answer in time. The caller discards it.
 */
export function patientProgram(): Promise<PatchedCopy> {
  return patchedProgram([
    {
      file: 'src/limits/redis-peers.ts',
      text: 'exchangeMs: 40, connectionMs: 1_000',
      by: 'exchangeMs: 60_000, connectionMs: 60_000',
    },
    {
      file: 'src/limits/shared-counter.ts',
      text: 'const WAIT_TIMEOUT_MS = 45',
      by: 'const WAIT_TIMEOUT_MS = 60_000',
    },
    {
      file: 'src/cluster/postgres-place-peers.ts',
      text: 'const EXCHANGE_TIMEOUT_MS = 1_000',
      by: 'const EXCHANGE_TIMEOUT_MS = 60_000',
    },
  ])
}

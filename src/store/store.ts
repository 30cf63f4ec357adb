import type { Origin } from '../domain/audit.ts'
import type { LedgerWrites } from './ledger-writes.ts'
import type * as reads from './operations/reads.ts'
import type * as writes from './operations/writes.ts'
import type { StoreUnavailable } from './store-unavailable.ts'

/** Signature of an operation without the database and the secrets, which the store supplies. */
type Operation<Implementation, Beside = unknown> = Implementation extends (
  db: never,
  input: infer Input,
  ...rest: never[]
) => Promise<infer Output>
  ? unknown extends Input
    ? () => Output
    : (input: Input & Beside) => Output
  : never

type Operations<Registry, Beside = unknown> = {
  readonly [Name in keyof Registry]: Operation<Registry[Name], Beside>
}

/** Origin of a change, for the audit log; absent for the gateway's own work, which is not logged. */
interface Recorded {
  readonly origin?: Origin
}

/** Read operations, by name. */
type Reads = Operations<typeof reads>

/** Write operations of any database, by name. */
type Writes = Operations<typeof writes, Recorded>

/** Write operations of the local file; `loadAccount` is one because it must see earlier writes. */
type LocalWrites = Writes & LedgerWrites

/**
 * Rows of the gateway, in any database. Inputs and outputs can be cloned to another thread. A failed
 * operation does not affect others; it rejects with a `GatewayError` if its input is to blame, and with
 * `StoreUnavailable` if the database is.
 */
export interface Rows {
  /** Reads committed data. */
  read<Name extends keyof Reads>(
    name: Name,
    ...input: Parameters<Reads[Name]>
  ): Promise<ReturnType<Reads[Name]>>
  /** Resolves when the commit that holds the write is durable. */
  write<Name extends keyof Writes>(
    name: Name,
    ...input: Parameters<Writes[Name]>
  ): Promise<ReturnType<Writes[Name]>>
  /** Refuses new operations, waits for queued ones, then closes. */
  close(): Promise<void>
}

/**
 * Rows in the local file, with those of the ledger. Writes apply and resolve in order, except that under load
 * holds and settlements of one user may overtake those of another. If the database fails, all writes of the
 * same commit reject with `StoreUnavailable`.
 */
export interface Store extends Rows {
  write<Name extends keyof LocalWrites>(
    name: Name,
    ...input: Parameters<LocalWrites[Name]>
  ): Promise<ReturnType<LocalWrites[Name]>>
  /** Number of writes that are not durable yet. */
  readonly queued: number
  /**
   * Resolves if the database fails for good (it is damaged, an I/O error occurred, or a thread died); never
   * rejects. Later operations are refused; the process should end, and recover at its next start.
   */
  readonly failed: Promise<StoreUnavailable>
}

import type { ChangeOrigin } from '../domain/audit.ts'
import type { LedgerWrites } from './ledger-writes.ts'
import type * as reads from './operations/reads.ts'
import type * as writes from './operations/writes.ts'
import type { StoreUnavailable } from './store-unavailable.ts'

/** Signature of an operation without the parameters for database and secrets, which the store supplies. */
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

/**
 * Who made a change, for the audit log. Absent for changes by the gateway itself, which are not recorded
 * there.
 */
interface Recorded {
  readonly origin?: ChangeOrigin
}

/** Read operations, by name. */
type Reads = Operations<typeof reads>

/** Write operations of any database, by name. */
type Writes = Operations<typeof writes, Recorded>

/**
 * Write operations of the local SQLite file. `loadAccount` is one of them, because it must see the effect of
 * earlier writes.
 */
type LocalWrites = Writes & LedgerWrites

/**
 * Operations on the gateway's rows, in any database. Inputs and outputs can be cloned to another thread. A
 * failed operation does not affect others. It rejects with a `GatewayError` if its input is invalid, and with
 * `StoreUnavailable` if the database has failed.
 */
export interface RowStore {
  /** Reads committed data. */
  read<Name extends keyof Reads>(
    name: Name,
    ...input: Parameters<Reads[Name]>
  ): Promise<ReturnType<Reads[Name]>>
  /** Runs a write. Resolves when its commit is durable. */
  write<Name extends keyof Writes>(
    name: Name,
    ...input: Parameters<Writes[Name]>
  ): Promise<ReturnType<Writes[Name]>>
  /** Refuses new operations, waits for queued ones, then closes the database. */
  close(): Promise<void>
}

/**
 * Operations on the local SQLite file, including those that every call needs. Writes take effect and resolve
 * in order, except that under load, holds and settlements of one user may overtake those of another user. If
 * the database fails, all writes of the same commit reject with `StoreUnavailable`.
 */
export interface Store extends RowStore {
  write<Name extends keyof LocalWrites>(
    name: Name,
    ...input: Parameters<LocalWrites[Name]>
  ): Promise<ReturnType<LocalWrites[Name]>>
  /** Number of writes that are not durable yet. */
  readonly queued: number
  /**
   * Resolves if the database fails permanently (damage, an I/O error, or a dead thread); never rejects. All
   * later operations are refused. The process should then end, and recover at its next start.
   */
  readonly failed: Promise<StoreUnavailable>
}

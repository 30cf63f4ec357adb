import type { LedgerWrites } from './ledger-writes.ts'
import type { reads } from './operations/reads.ts'
import type { writes } from './operations/writes.ts'
import type { StoreUnavailable } from './store-unavailable.ts'

/** An operation as its caller sees it: without the database and the keys that it runs with. */
type Operation<Implementation> = Implementation extends (
  db: never,
  input: infer Input,
  ...rest: never[]
) => Promise<infer Output>
  ? unknown extends Input
    ? () => Output
    : (input: Input) => Output
  : never

type Operations<Registry> = { readonly [Name in keyof Registry]: Operation<Registry[Name]> }

/** Everything that can be asked, by name. */
type Reads = Operations<typeof reads>

/** Everything that can be changed on any database, by name. */
type Writes = Operations<typeof writes>

/**
 * The same with what each call writes; `loadAccount` is here because it must see what was queued before it.
 */
type LocalWrites = Writes & LedgerWrites

/**
 * The rows of the gateway, on whatever database. Inputs and outputs are plain values that can cross to
 * another thread. An operation that fails rejects alone, with a `GatewayError` where the caller is to blame,
 * and with `StoreUnavailable` where the database is.
 */
export interface Rows {
  /** Reads what is committed. */
  read<Name extends keyof Reads>(
    name: Name,
    ...input: Parameters<Reads[Name]>
  ): Promise<ReturnType<Reads[Name]>>
  /** Resolves when the commit that holds the write is durable. */
  write<Name extends keyof Writes>(
    name: Name,
    ...input: Parameters<Writes[Name]>
  ): Promise<ReturnType<Writes[Name]>>
  /** Waits until all that was begun is committed, then closes. Calls after it are refused. */
  close(): Promise<void>
}

/**
 * The rows in the local file, and the ledger's with them. Writes apply in the order of the calls, and resolve
 * in that order; but where many wait, holds and settlements of one user may overtake those of another. Where
 * the database fails, all that shared a commit reject with `StoreUnavailable`.
 */
export interface Store extends Rows {
  write<Name extends keyof LocalWrites>(
    name: Name,
    ...input: Parameters<LocalWrites[Name]>
  ): Promise<ReturnType<LocalWrites[Name]>>
  /** Writes that are not durable yet. */
  readonly queued: number
  /**
   * Resolves if the database can no longer be relied on (it is damaged, an I/O error, a thread that died),
   * and never rejects. Every later call is refused: the process should end, and recover at its next start.
   */
  readonly failed: Promise<StoreUnavailable>
}

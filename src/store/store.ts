import type { LedgerWrites } from './ledger-writes.ts'
import type { reads } from './operations/reads.ts'
import type { writes } from './operations/writes.ts'

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

/** Everything that can be changed, by name; `loadAccount` is here because it must see what was queued before it. */
type Writes = Operations<typeof writes> & LedgerWrites

/**
 * The rows of the gateway. Inputs and outputs are plain values that can cross to another thread. An operation that fails
 * rejects alone, with a `GatewayError` where the caller is to blame; where the database is, all that shared its commit
 * reject with `StoreUnavailable`.
 */
export interface Store {
  /** Reads what is committed. */
  read<Name extends keyof Reads>(
    name: Name,
    ...input: Parameters<Reads[Name]>
  ): Promise<ReturnType<Reads[Name]>>
  /**
   * Queues a write; resolves when the commit that holds it is durable. Writes apply in the order of the calls, and
   * resolve in that order.
   */
  write<Name extends keyof Writes>(
    name: Name,
    ...input: Parameters<Writes[Name]>
  ): Promise<ReturnType<Writes[Name]>>
  /** Waits until all that was queued is committed, then closes. Calls after it are refused. */
  close(): Promise<void>
  /** Writes that are not durable yet. */
  readonly queued: number
}

import type { AccountName } from './bank.ts'
import type { HoldOpening, SettledCall } from '../domain/records/usage.ts'
import type { LedgerWrites } from './ledger-writes.ts'
import type { ProvenCall } from './operations/stored-responses.ts'
import type { StoreUnavailable } from './store-unavailable.ts'

/** Settled call that may not be reported to the bank yet. */
export interface OutboxEntry {
  /** Position in the order of settlements. */
  readonly place: number
  readonly token_id: number
  readonly user_id: number
  /** Quota units. */
  readonly quota: number
  /** Accounts of the budgets that it is charged to, as `budgetList` writes them. */
  readonly budgets: string
  /** Report of the call, as JSON. */
  readonly row: string
}

/** Settled call whose provenance other nodes may not see yet. */
export interface UnsharedCall {
  /** Position in the order of settlements. */
  readonly place: number
  readonly call: ProvenCall
}

/** Writes to the file of one node of a cluster: its open holds, its outbox and its name. */
export interface NodeWrites
  extends Pick<LedgerWrites, 'growHold' | 'markProgress' | 'parkHold' | 'parkedHolds' | 'probe' | 'recover'> {
  hold(opening: HoldOpening): void
  /** Closes the hold, and puts the call and its provenance into their outboxes. */
  settle(call: SettledCall): void
  /** The oldest entries of the outbox that charge none of the accounts in `except`. */
  outbox(page: { readonly limit: number; readonly except: readonly AccountName[] }): OutboxEntry[]
  /** Removes the entries at these positions from the outbox. */
  reported(entries: { readonly places: readonly number[] }): void
  /** The oldest calls whose provenance is not shared. */
  unshared(page: { readonly limit: number }): UnsharedCall[]
  /** Removes the calls up to this position from those of `unshared`. */
  shared(upTo: { readonly place: number }): void
  /**
   * Binds the file to a bank and returns the node's name in it. Throws a sentence for the operator if the
   * file has calls to report to another bank.
   */
  joinBank(bank: { readonly bankId: string }): string
}

/** Open file of a node. Writes apply in order, as those of `Store` do, and resolve when durable. */
export interface NodeFile {
  /** Name of the node in the bank. */
  readonly node: string
  write<Name extends keyof NodeWrites>(
    name: Name,
    ...input: Parameters<NodeWrites[Name]>
  ): Promise<ReturnType<NodeWrites[Name]>>
  /** Number of writes that are not durable yet. */
  readonly queued: number
  /** Resolves if the file fails for good; see `Store`. */
  readonly failed: Promise<StoreUnavailable>
  close(): Promise<void>
}

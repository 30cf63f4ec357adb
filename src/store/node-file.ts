import type { AccountName } from './bank.ts'
import type { HoldOpening, SettledCall } from '../domain/records/usage.ts'
import type { LedgerWrites } from './ledger-writes.ts'
import type { CallProvenance } from './operations/stored-responses.ts'
import type { StoreUnavailable } from './store-unavailable.ts'

/** A settled call that may still have to be reported to the bank. */
export interface OutboxEntry {
  /** Position of the call in the order of settlements. */
  readonly place: number
  readonly token_id: number
  readonly user_id: number
  /** Charge of the call in quota units. */
  readonly quota: number
  /** Budget accounts that the call is charged to, as `formatBudgetList` writes them. */
  readonly budgets: string
  /** Report of the call to the bank, as JSON. */
  readonly row: string
}

/** A settled call whose provenance (which channel and key answered) may not be visible to other nodes yet. */
export interface UnsharedProvenance {
  /** Position of the call in the order of settlements. */
  readonly place: number
  readonly call: CallProvenance
}

/**
 * Writes to the local file of one node of a cluster. The file contains the node's open holds, its outbox of
 * settled calls, and its name.
 */
export interface NodeWrites
  extends Pick<
    LedgerWrites,
    'growHold' | 'markProgress' | 'parkHold' | 'parkedHolds' | 'probe' | 'recover' | 'releaseHold'
  > {
  hold(opening: HoldOpening): void
  /**
   * Closes the hold of a call. Stores the call until it is reported, and its provenance until that is shared.
   */
  settle(call: SettledCall): void
  /** The oldest calls in the outbox that are not charged to an account in `except`. */
  outbox(page: { readonly limit: number; readonly except: readonly AccountName[] }): OutboxEntry[]
  /** Removes the calls at these positions from the outbox, because they were reported. */
  reported(entries: { readonly places: readonly number[] }): void
  /**
   * The oldest calls whose provenance (which channel and key answered) is not shared with other nodes yet.
   */
  unshared(page: { readonly limit: number }): UnsharedProvenance[]
  /**
   * Records that the provenance (which channel and key answered) of all calls up to this position is shared
   * with other nodes.
   */
  shared(upTo: { readonly place: number }): void
  /**
   * Binds the file to a bank, and returns the node's name there. Throws a sentence for the operator if the
   * file has calls that must be reported to another bank.
   */
  joinBank(bank: { readonly bankId: string }): string
}

/** Open file of a node. Writes take effect in the order in which they are made, and resolve when durable. */
export interface NodeFile {
  /** Name of the node in the bank. */
  readonly node: string
  write<Name extends keyof NodeWrites>(
    name: Name,
    ...input: Parameters<NodeWrites[Name]>
  ): Promise<ReturnType<NodeWrites[Name]>>
  /** Number of writes that are not durable yet. */
  readonly queued: number
  /** Resolves if the file fails permanently; see `Store`. */
  readonly failed: Promise<StoreUnavailable>
  close(): Promise<void>
}

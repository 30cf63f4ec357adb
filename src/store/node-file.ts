import type { HoldOpening, LedgerWrites, SettledCall } from './ledger-writes.ts'
import type { StoreUnavailable } from './store-unavailable.ts'

/** A settled call that the bank may not know of yet. */
export interface OutboxEntry {
  /** In the order of the settlements. */
  readonly place: number
  readonly tokenId: number
  readonly userId: number
  /** Quota units. */
  readonly quota: number
  /** What is reported of it, as JSON. */
  readonly row: string
}

/**
 * What a node of many keeps in a file of its own: its open holds, what it has settled and not yet reported,
 * its name.
 */
export interface NodeWrites extends Pick<LedgerWrites, 'growHold' | 'markProgress' | 'recover'> {
  hold(opening: HoldOpening): void
  /** Closes the hold and puts the call into the outbox. */
  settle(call: SettledCall): void
  /** The oldest entries of the outbox. */
  outbox(page: { readonly limit: number }): OutboxEntry[]
  /** Takes entries out of the outbox, up to that place. */
  reported(upTo: { readonly place: number }): void
  /**
   * The node's name in the bank, made with the file. Throws, with a sentence for the operator, if there is
   * something in it to be reported to another bank.
   */
  joinBank(bank: { readonly bankId: string }): string
}

/**
 * The file, open. Writes apply in the order of the calls, as those of `Store` do, and resolve when they are
 * durable.
 */
export interface NodeFile {
  /** The node's name in the bank. */
  readonly node: string
  write<Name extends keyof NodeWrites>(
    name: Name,
    ...input: Parameters<NodeWrites[Name]>
  ): Promise<ReturnType<NodeWrites[Name]>>
  /** Writes that are not durable yet. */
  readonly queued: number
  /** Resolves if the file can no longer be relied on; see `Store`. */
  readonly failed: Promise<StoreUnavailable>
  close(): Promise<void>
}

import { setTimeout as delay } from 'node:timers/promises'
import type { SettledCall } from '../../domain/records/usage.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import type { Store } from '../../store/store.ts'
import type { OpenHold } from './open-hold.ts'
import { chargeBalances, adjustPendingWrites, type ChargedBalances } from './charged-balances.ts'
import type { UnwrittenHolds } from './unwritten-holds.ts'

/** Delay before a settlement is repeated that the store refused, for instance because the disk is full. */
const SETTLE_RETRY_MS = 200

/** Writes of a ledger. Records whether the store accepts them, and repeats settlements until it does. */
export class LedgerWriter {
  readonly storage = new StorageHealth()
  /** Called with each call once its charge is durable; undefined if there are no listeners. */
  onSettled: ((call: SettledCall) => void) | undefined
  readonly #store: Pick<Store, 'write'>
  readonly #waiting: UnwrittenHolds
  #settling = 0
  #repeating = 0
  #lastWriteSucceeded = true
  #isRetryStopped = false

  constructor(store: Pick<Store, 'write'>, waiting: UnwrittenHolds) {
    this.#store = store
    this.#waiting = waiting
  }

  /**
   * Whether the last write succeeded. If not, a hold must be durable before its upstream is called, so that
   * no upstream works for a call that a full disk cannot charge.
   */
  get isWritable(): boolean {
    return this.#lastWriteSucceeded
  }

  /** Number of charges of ended calls that are not durable yet. */
  get unresolved(): number {
    return this.#settling + this.#repeating
  }

  /** Number of settlements that the store refused and that are being repeated. */
  get repeating(): number {
    return this.#repeating
  }

  /**
   * Checks whether calls can be charged, by a write that needs disk space and leaves nothing behind. Resolves
   * to false if this write fails, or an earlier failure has not been cleared.
   */
  async probe(): Promise<boolean> {
    try {
      await this.#store.write('probe')
      this.#noteStorage(undefined)
    } catch (error) {
      this.#lastWriteSucceeded = false
      this.storage.note('file', error instanceof Error ? error : new Error(String(error)))
    }
    return this.storage.isOk
  }

  /** Stops repeating settlements that cannot be written; the next start settles them as after a crash. */
  stopRetrying(): void {
    this.#isRetryStopped = true
  }

  /**
   * Waits for a write to these balances. Resolves to undefined once it is durable, or to the error; never
   * rejects.
   */
  async write(payer: ChargedBalances, written: Promise<void>): Promise<Error | undefined> {
    adjustPendingWrites(payer, 1)
    let failure: Error | undefined
    try {
      await written
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error))
    }
    this.#noteWrite(failure)
    adjustPendingWrites(payer, -1)
    return failure
  }

  /**
   * Repeats the settlement until the store accepts it, so that no charge is lost. If the store refuses
   * writes, this rejects at once and the settlement continues in the background.
   */
  async settle(hold: OpenHold, payer: ChargedBalances, row: SettledCall): Promise<void> {
    this.#settling += 1
    let failure: StoreUnavailable | undefined
    try {
      failure = await this.#writeSettlement(payer, row)
    } finally {
      this.#settling -= 1
    }
    if (!failure) return
    // A call whose hold is not on the disk delivered nothing to its client, so its charge is reverted.
    if (hold.hasWriteFailed || hold.isUnwritten) {
      chargeBalances(payer, -row.quota)
      throw failure
    }
    const repeating = this.#repeat(payer, row)
    if (!failure.refusesWrites) return repeating
    repeating.catch(() => {})
    throw failure
  }

  async #repeat(payer: ChargedBalances, row: SettledCall): Promise<void> {
    this.#repeating += 1
    // Until the settlement is written, the account in memory is ahead of the store and must not be evicted.
    adjustPendingWrites(payer, 1)
    try {
      do await delay(SETTLE_RETRY_MS)
      while (await this.#writeSettlement(payer, row))
    } finally {
      adjustPendingWrites(payer, -1)
      this.#repeating -= 1
    }
  }

  // Resolves to undefined once the settlement is durable, otherwise to the reason to repeat it.
  async #writeSettlement(payer: ChargedBalances, row: SettledCall): Promise<StoreUnavailable | undefined> {
    adjustPendingWrites(payer, 1)
    this.#waiting.writeDue()
    try {
      await this.#store.write('settle', row)
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || this.#isRetryStopped) throw error
      this.#noteWrite(error)
      return error
    } finally {
      adjustPendingWrites(payer, -1)
    }
    this.#noteWrite(undefined)
    this.onSettled?.(row)
    return undefined
  }

  #noteWrite(failure: Error | undefined): void {
    this.#lastWriteSucceeded = failure === undefined
    this.#noteStorage(failure)
  }

  // An error of a single statement does not mean that the store is unavailable.
  #noteStorage(failure: unknown): void {
    if (failure instanceof StoreUnavailable) this.storage.note('file', failure)
    else if (failure === undefined && this.#repeating === 0 && !this.storage.isOk)
      this.storage.note('file', undefined)
  }
}

/**
 * Part of the storage that a call needs in order to be charged: the file that this process writes, or the
 * bank that it shares with other processes.
 */
export type StoragePart = 'file' | 'bank'

/** Whether calls can be charged now, by the last write to each part of the storage. */
export class StorageHealth {
  /** Called when the first part fails, and when all parts work again. */
  onChange: () => void = () => {}
  readonly #failures = new Map<StoragePart, Error>()

  /** The error of a part that cannot be written; undefined while all can. */
  get failure(): Error | undefined {
    return this.#failures.values().next().value
  }

  get isOk(): boolean {
    return this.#failures.size === 0
  }

  /** Records the outcome of a write; `failure` is undefined if it is durable. */
  note(part: StoragePart, failure: Error | undefined): void {
    const wasOk = this.isOk
    if (failure) this.#failures.set(part, failure)
    else this.#failures.delete(part)
    if (this.isOk !== wasOk) this.onChange()
  }
}

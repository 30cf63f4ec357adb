import { setTimeout as delay } from 'node:timers/promises'
import type { SettledCall } from '../domain/records/usage.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import type { Store } from '../store/store.ts'
import type { OpenHold } from './open-hold.ts'
import { charge, countWrite, type Payer } from './payer.ts'
import { StorageHealth } from './storage-health.ts'
import type { WaitingHolds } from './waiting-holds.ts'

/** Delay before a settlement that the store refused, as on a full disk, is repeated. */
const SETTLE_RETRY_MS = 200

/** Writes of a ledger: notes whether the store takes them, and repeats settlements until it does. */
export class LedgerWriter {
  readonly storage = new StorageHealth()
  /** Called with each call once its charge is durable; undefined without listeners. */
  onSettled: ((call: SettledCall) => void) | undefined
  readonly #store: Pick<Store, 'write'>
  readonly #waiting: WaitingHolds
  #settling = 0
  #repeating = 0
  #lastWriteSucceeded = true
  #isRetryStopped = false

  constructor(store: Pick<Store, 'write'>, waiting: WaitingHolds) {
    this.#store = store
    this.#waiting = waiting
  }

  /**
   * Whether the last write succeeded. While it did not, a hold has to be durable before its upstream is
   * called: no upstream should work for what a full disk cannot charge.
   */
  get isWritable(): boolean {
    return this.#lastWriteSucceeded
  }

  /** Number of settlements that are not durable yet. */
  get unresolved(): number {
    return this.#settling + this.#repeating
  }

  /** Number of settlements that the store refused, and that are repeated. */
  get repeating(): number {
    return this.#repeating
  }

  /**
   * Checks whether calls can be charged, by a write that needs room and leaves nothing behind. Settlements
   * that could not be written tell more: while there are any, the answer is no.
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

  /** Stops repeating settlements that cannot be written: the next start settles them as a crash. */
  stopRetrying(): void {
    this.#isRetryStopped = true
  }

  /** Resolves to the error, or to undefined where the write is durable; never rejects. */
  async write(payer: Payer, written: Promise<void>): Promise<Error | undefined> {
    countWrite(payer, 1)
    let failure: Error | undefined
    try {
      await written
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error))
    }
    this.#noteWrite(failure)
    countWrite(payer, -1)
    return failure
  }

  /**
   * Repeats the settlement until the store takes it: no charge is dropped. If the store refuses writes, this
   * rejects at once, and the settlement goes on.
   */
  async settle(hold: OpenHold, payer: Payer, row: SettledCall): Promise<void> {
    this.#settling += 1
    const failure = await this.#writeSettlement(payer, row).finally(() => (this.#settling -= 1))
    if (!failure) return
    // Nothing was delivered of a call whose hold is not on the disk either.
    if (hold.hasWriteFailed || hold.isUnwritten) {
      charge(payer, -row.quota)
      throw failure
    }
    const repeating = this.#repeat(payer, row)
    if (!failure.refusesWrites) return repeating
    repeating.catch(() => {})
    throw failure
  }

  async #repeat(payer: Payer, row: SettledCall): Promise<void> {
    this.#repeating += 1
    // Until it is written, the account here is ahead of the store, and must not be forgotten.
    countWrite(payer, 1)
    try {
      do await delay(SETTLE_RETRY_MS)
      while (await this.#writeSettlement(payer, row))
    } finally {
      countWrite(payer, -1)
      this.#repeating -= 1
    }
  }

  // Resolves to undefined where the settlement is durable, and else to the reason for repeating it.
  async #writeSettlement(payer: Payer, row: SettledCall): Promise<StoreUnavailable | undefined> {
    countWrite(payer, 1)
    this.#waiting.writeDue()
    try {
      await this.#store.write('settle', row)
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || this.#isRetryStopped) throw error
      this.#noteWrite(error)
      return error
    } finally {
      countWrite(payer, -1)
    }
    this.#noteWrite(undefined)
    this.onSettled?.(row)
    return undefined
  }

  #noteWrite(failure: Error | undefined): void {
    this.#lastWriteSucceeded = failure === undefined
    this.#noteStorage(failure)
  }

  // An error of one statement tells nothing of the store.
  #noteStorage(failure: unknown): void {
    if (failure instanceof StoreUnavailable) this.storage.note('file', failure)
    else if (failure === undefined && this.#repeating === 0 && !this.storage.isOk)
      this.storage.note('file', undefined)
  }
}

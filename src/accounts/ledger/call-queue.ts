import type { Hold } from '../../domain/hold.ts'
import { refusalByOpenHolds } from './quota-refusal.ts'
import { adjustPendingWrites, type ChargedBalances } from './charged-balances.ts'

/**
 * A call, or the growth of a call's hold, that must wait for other holds to end. Growths wait only if this
 * process does not borrow its quota.
 */
export interface QuotaRequest {
  readonly amount: number
  /**
   * The hold that is to grow; undefined for a new call. Growths have precedence, because their calls are
   * already running.
   */
  readonly grown?: (Pick<Hold, 'id'> & { readonly amount: number }) | undefined
  /** Reserves the amount on these balances, all of which have that much free quota. */
  readonly admit: (payer: ChargedBalances) => void
  /** Called instead of `admit` if the end of other calls can no longer make the amount affordable. */
  readonly refuse: (error: unknown) => void
}

/** A call, or the growth of a call's hold, in the queue. */
export interface QueuedQuotaRequest {
  /** Ends the wait; neither `admit` nor `refuse` is called. */
  leave(): void
  /** Ends the wait with a refusal; if quota is borrowed, only after the first answer of the bank. */
  expire(): void
}

/** Calls that wait for the open holds of others, in order of arrival for each balance. */
export interface CallQueue {
  /** Adds a call, or the growth of a hold, that is not affordable now. */
  add(waiting: QuotaRequest, payer: ChargedBalances): QueuedQuotaRequest
  /** Admits the waiting calls that have become affordable, after quota of these balances has become free. */
  released(payer: ChargedBalances): void
  /** Checks all waiting calls again, after an operator has changed a balance. */
  retryAll(): void
}

/** Entry of a call, or the growth of a hold, in the queue. Its balances stay in memory while it waits. */
export class QuotaQueueEntry {
  readonly waiting: QuotaRequest
  /** Number of the entry in order of arrival in this process. */
  readonly order: number
  #payer: ChargedBalances
  isOpen = true

  constructor(waiting: QuotaRequest, payer: ChargedBalances, order: number) {
    this.waiting = waiting
    this.order = order
    this.#payer = payer
    adjustPendingWrites(payer, 1)
  }

  get payer(): ChargedBalances {
    return this.#payer
  }

  set payer(payer: ChargedBalances) {
    adjustPendingWrites(payer, 1)
    adjustPendingWrites(this.#payer, -1)
    this.#payer = payer
  }

  close(): void {
    this.isOpen = false
    adjustPendingWrites(this.#payer, -1)
  }
}

/** How long a call waits for quota, and what ends its wait. */
export interface QuotaWaitLimits {
  readonly waitMs: number
  /** Calls the listener when the client has left; returns a function that removes it. */
  readonly onLeft: (listener: () => void) => () => void
}

/** Maximum delay of a Node.js timer; with a longer delay it would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1

/**
 * Resolves to the result of `admit` once the amount is free on all balances. Rejects with the refusal after
 * `waitMs`, or when the amount can no longer become affordable.
 */
export function waitForQuota<Admitted>(
  queue: CallQueue,
  payer: ChargedBalances,
  amount: number,
  { waitMs, onLeft }: QuotaWaitLimits,
  admit: (payer: ChargedBalances) => Admitted,
): Promise<Admitted> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer)
      stopListening()
      queued.leave()
    }
    const refuse = (error: unknown): void => {
      end()
      reject(error)
    }
    const queued = queue.add(
      {
        amount,
        refuse,
        admit(found) {
          end()
          resolve(admit(found))
        },
      },
      payer,
    )
    const stopListening = onLeft(() => refuse(refusalByOpenHolds(payer, amount)))
    const timer = setTimeout(() => queued.expire(), Math.min(waitMs, MAX_DELAY_MS)).unref()
  })
}

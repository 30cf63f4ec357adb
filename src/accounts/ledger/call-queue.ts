import { refusalByOpenHolds } from './quota-refusal.ts'
import { countPendingWrites, type ChargedBalances } from './charged-balances.ts'

/** A call or the growth of a hold that is prevented by other holds. Growths wait only if quota is not borrowed. */
export interface Waiting {
  readonly amount: number
  /** What it holds already, if it is the growth of a hold. Growths have precedence, because their calls are under way. */
  readonly grown?: { readonly amount: number } | undefined
  /** Takes the amount from these balances, on all of which it is free. */
  readonly admit: (payer: ChargedBalances) => void
  /** Called instead of `admit` if the end of other calls can no longer make the amount affordable. */
  readonly refuse: (error: unknown) => void
}

/** A call or a growth in the queue. */
export interface Queued {
  /** Ends the wait; neither `admit` nor `refuse` is called. */
  leave(): void
  /** Ends the wait with a refusal; where quota is borrowed, after the first answer of the bank. */
  expire(): void
}

/** Calls that wait for the open holds of others, in order of arrival for each balance. */
export interface CallQueue {
  /** Adds a call or a growth that is not affordable now. */
  add(waiting: Waiting, payer: ChargedBalances): Queued
  /** Admits what is now affordable, after quota of these balances has become free. */
  released(payer: ChargedBalances): void
  /** Tries all again, after an operator has changed a balance. */
  retryAll(): void
}

/** A call or a growth that waits. Its balances stay in memory meanwhile. */
export class Place {
  readonly waiting: Waiting
  /** Rises with each arrival in this process. */
  readonly order: number
  #payer: ChargedBalances
  isOpen = true

  constructor(waiting: Waiting, payer: ChargedBalances, order: number) {
    this.waiting = waiting
    this.order = order
    this.#payer = payer
    countPendingWrites(payer, 1)
  }

  get payer(): ChargedBalances {
    return this.#payer
  }

  set payer(payer: ChargedBalances) {
    countPendingWrites(payer, 1)
    countPendingWrites(this.#payer, -1)
    this.#payer = payer
  }

  close(): void {
    this.isOpen = false
    countPendingWrites(this.#payer, -1)
  }
}

/** The limits on the wait of a call. */
export interface Patience {
  readonly waitMs: number
  /** Calls the listener when the client has left; returns a function that removes it. */
  readonly onLeft: (listener: () => void) => () => void
}

/** Maximum delay of a timer. */
const MAX_DELAY_MS = 2 ** 31 - 1

/**
 * Resolves to the result of `admit` once the amount is free on all balances. Rejects with the refusal after
 * `waitMs`, or when the amount can no longer become affordable.
 */
export function waitForQuota<Admitted>(
  queue: CallQueue,
  payer: ChargedBalances,
  amount: number,
  { waitMs, onLeft }: Patience,
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

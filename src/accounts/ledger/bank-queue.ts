import { setTimeout as delay } from 'node:timers/promises'
import type { AccountSource } from './account-source.ts'
import { type CallQueue, QuotaQueueEntry, type QueuedQuotaRequest, type QuotaRequest } from './call-queue.ts'
import { affordableAmountInTurn, budgetNames, type ChargedBalances } from './charged-balances.ts'
import { refusalByOpenHolds, QuotaHeldByOtherCalls } from './quota-refusal.ts'

/**
 * Interval at which a waiting call requests a loan again. The bank does not report when calls of other
 * processes end.
 */
const ASK_AGAIN_MS = 100
/**
 * Delay of the next request for a loan after a call of this process has ended, or while other processes
 * return spare quota.
 */
const ASK_SOON_MS = 20
/**
 * Maximum time for which an unanswered request for a loan, as on a locked row, delays those of other calls.
 */
const MAX_ANSWER_MS = 250
/** Maximum number of loans of quota requested at once for one user's calls. */
const MAX_LOANS_AT_ONCE = 16
/**
 * Time that other processes have to return spare quota. Beyond it a call no longer counts on them: a lost
 * process returns nothing.
 */
export const LOAN_RETURN_MS = 700

/** A call that waits until the bank lends quota for it. */
class LoanPlace extends QuotaQueueEntry {
  readonly beganMs = performance.now()
  /** Position among the waiting calls of all processes, once the bank has stated it. */
  bankOrder: number | undefined
  /** Whether a loan for the call is being requested now. */
  isAsking = false
  /** Whether the bank last reported that only the open holds of other calls prevent this call. */
  isHeld = false
  /** Whether the wait is over: the call is refused once the bank has answered that open holds prevent it. */
  isExpired = false
  /** Whether the call stopped waiting without a loan. */
  hasLeft = false

  /**
   * Identifies the balances that the call is charged to. Of several calls with the same balances, none is
   * admitted before the first.
   */
  get balancesKey(): string {
    return `${this.payer.account.token.id} ${budgetNames(this.payer.budgets).join(' ')}`
  }
}

/**
 * Calls that wait for quota to be lent by the bank, the database that nodes share. The bank decides whose
 * turn it is among the waiting calls of all processes; a call of this process is admitted only by a loan.
 */
export class BankQueue implements CallQueue {
  readonly #accounts: Pick<AccountSource, 'borrow' | 'leave'>
  /** The waiting calls, by user id. */
  readonly #borrowers = new Map<number, Borrower>()
  #arrivals = 0

  constructor(accounts: Pick<AccountSource, 'borrow' | 'leave'>) {
    this.#accounts = accounts
  }

  add(waiting: QuotaRequest, payer: ChargedBalances): QueuedQuotaRequest {
    const place = new LoanPlace(waiting, payer, (this.#arrivals += 1))
    const userId = payer.account.user.id
    const borrower = this.#borrowers.get(userId) ?? new Borrower()
    this.#borrowers.set(userId, borrower)
    borrower.places.add(place)
    void this.#borrow(place)
    this.#schedule(userId, borrower, ASK_AGAIN_MS)
    return { leave: () => this.#leave(place), expire: () => this.#expire(place) }
  }

  released({ account: { user }, budgets }: ChargedBalances): void {
    // Calls of other users may wait for the same group's budget.
    if (budgets.length > 0) return this.retryAll()
    const borrower = this.#borrowers.get(user.id)
    if (borrower) this.#schedule(user.id, borrower, ASK_SOON_MS)
  }

  retryAll(): void {
    for (const [userId, borrower] of this.#borrowers) this.#schedule(userId, borrower, ASK_SOON_MS)
  }

  #expire(place: LoanPlace): void {
    place.isExpired = true
    if (place.isOpen && place.isHeld) this.#refuse(place, refusedAs(place))
  }

  #refuse(place: LoanPlace, error: unknown): void {
    this.#leave(place)
    place.waiting.refuse(error)
  }

  #leave(place: LoanPlace): void {
    if (!place.isOpen) return
    this.#remove(place)
    place.hasLeft = true
    if (!place.isAsking) this.#accounts.leave(place.order)
  }

  #remove(place: LoanPlace): void {
    place.close()
    const userId = place.payer.account.user.id
    const borrower = this.#borrowers.get(userId)
    borrower?.places.delete(place)
    if (borrower?.places.size === 0) {
      clearTimeout(borrower.timer)
      this.#borrowers.delete(userId)
    }
  }

  #schedule(userId: number, borrower: Borrower, inMs: number): void {
    if (borrower.isAsking) {
      borrower.nextMs = Math.min(borrower.nextMs, inMs)
      return
    }
    const dueAt = performance.now() + inMs
    if (borrower.timer && borrower.dueAt <= dueAt) return
    clearTimeout(borrower.timer)
    borrower.dueAt = dueAt
    borrower.timer = setTimeout(() => void this.#ask(userId, borrower), inMs).unref()
  }

  // Loans are requested in order of arrival. While the first of several calls with the same balances is
  // refused, no loans are requested for the others. Calls with other balances ask together, because many of them,
  // one after the other, would delay the next request of the first call for longer than it may wait.
  async #ask(userId: number, borrower: Borrower): Promise<void> {
    borrower.timer = undefined
    borrower.isAsking = true
    borrower.nextMs = ASK_AGAIN_MS
    const refused = new Set<string>()
    const places = [...borrower.places]
    for (let at = 0, size = 1; at < places.length; size = MAX_LOANS_AT_ONCE) {
      const next: LoanPlace[] = []
      const asking = new Set<string>()
      for (; at < places.length && next.length < size; at += 1) {
        const place = places[at]!
        const { isHeld, balancesKey } = place
        if (isHeld && refused.has(balancesKey)) this.#answered(place)
        // The answer to the first of them decides whether it asks.
        else if (refused.size > 0 && asking.has(balancesKey)) break
        else {
          asking.add(balancesKey)
          next.push(place)
        }
      }
      const asked = Promise.all(
        next.map(async (place) => {
          if (await this.#borrow(place)) refused.add(place.balancesKey)
        }),
      )
      await Promise.race([asked, delay(MAX_ANSWER_MS)])
    }
    borrower.isAsking = false
    if (this.#borrowers.get(userId) === borrower) this.#schedule(userId, borrower, borrower.nextMs)
  }

  /** Requests a loan for a call. Resolves to true if the call must go on waiting because of open holds. */
  async #borrow(place: LoanPlace): Promise<boolean> {
    if (!place.isOpen || place.isAsking) return false
    const { amount, admit } = place.waiting
    place.isAsking = true
    try {
      const of = { ticket: place.order, order: place.bankOrder, waits: place.isHeld }
      const {
        payer,
        refusal,
        isReturnable = false,
        order,
      } = await this.#accounts.borrow(place.payer, amount, of)
      place.bankOrder = order ?? place.bankOrder
      if (!place.isOpen) return false
      place.payer = payer
      if (refusal && !(refusal instanceof QuotaHeldByOtherCalls)) this.#refuse(place, refusal)
      else if (refusal) return this.#isHeld(place, isReturnable)
      else if (amount <= affordableAmountInTurn(payer.account, payer.budgets)) {
        this.#remove(place)
        admit(payer)
      }
    } catch (error) {
      if (place.isOpen) this.#refuse(place, error)
    } finally {
      place.isAsking = false
      // The bank may have queued the call again after it had stopped waiting.
      if (place.hasLeft) this.#accounts.leave(place.order)
    }
    return false
  }

  #isHeld(place: LoanPlace, isReturnable: boolean): boolean {
    if (isReturnable && performance.now() - place.beganMs < LOAN_RETURN_MS) {
      const userId = place.payer.account.user.id
      const borrower = this.#borrowers.get(userId)
      if (borrower) this.#schedule(userId, borrower, ASK_SOON_MS)
      return false
    }
    place.isHeld = true
    this.#answered(place)
    return place.isOpen
  }

  #answered(place: LoanPlace): void {
    if (place.isOpen && place.isExpired) this.#refuse(place, refusedAs(place))
  }
}

function refusedAs({ payer, waiting }: LoanPlace): QuotaHeldByOtherCalls {
  return refusalByOpenHolds(payer, waiting.amount)
}

/** Requests for loans on behalf of the waiting calls of one user. */
class Borrower {
  readonly places = new Set<LoanPlace>()
  timer: NodeJS.Timeout | undefined
  /** Time at which `timer` ends, by `performance.now()`. */
  dueAt = 0
  isAsking = false
  /** Milliseconds from the end of the current requests to the next ones. */
  nextMs = ASK_AGAIN_MS
}

import { setTimeout as delay } from 'node:timers/promises'
import type { AccountSource } from './account-source.ts'
import { type CallQueue, Place, type Queued, type Waiting } from './call-queue.ts'
import { freeAmount, budgetNames, type ChargedBalances } from './charged-balances.ts'
import { refusalByOpenHolds, QuotaHeldByOtherCalls } from './quota-refusal.ts'

/** Interval between requests for loans. The bank does not report when calls of other processes end. */
const ASK_AGAIN_MS = 100
/** Delay of the next request after a call of this process has ended, or while others return what they do not need. */
const ASK_SOON_MS = 20
/** Time after which other loans are requested although one is not answered, as on a locked row. */
const MAX_ANSWER_MS = 250
/** Maximum number of loans requested at once for one user. */
const MAX_LOANS_AT_ONCE = 16
/** Time in which other processes return what they do not need; one that is lost returns nothing. */
export const RETURN_MS = 700

/** A call that waits for a loan. */
class LoanPlace extends Place {
  readonly beganMs = performance.now()
  /** Its order among the calls of all processes, once the bank has answered. */
  bankOrder: number | undefined
  /** Whether a loan is being requested. */
  isAsking = false
  /** Whether open holds prevent it, as far as the bank knows. */
  isHeld = false
  /** Whether it is refused as soon as that is known. */
  isExpired = false
  /** Whether it ended without a loan. */
  hasLeft = false

  /** Identifies the balances: of places with the same ones, none can be admitted before the first. */
  get balancesKey(): string {
    return `${this.payer.account.token.id} ${budgetNames(this.payer.budgets).join(' ')}`
  }
}

/**
 * Calls that wait where quota is borrowed. The bank decides whose turn it is among the calls of all processes: each
 * call gets its place there when it arrives, and nothing is admitted here but by a loan.
 */
export class BankQueue implements CallQueue {
  readonly #accounts: Pick<AccountSource, 'borrow' | 'leave'>
  /** The places by user. */
  readonly #borrowers = new Map<number, Borrower>()
  #arrivals = 0

  constructor(accounts: Pick<AccountSource, 'borrow' | 'leave'>) {
    this.#accounts = accounts
  }

  add(waiting: Waiting, payer: ChargedBalances): Queued {
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
    // Those of other users may wait for a budget of their group.
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

  // Loans are requested in order of arrival. As long as the first of several places with the same balances is
  // refused, the others are not requested.
  async #ask(userId: number, borrower: Borrower): Promise<void> {
    borrower.timer = undefined
    borrower.isAsking = true
    borrower.nextMs = ASK_AGAIN_MS
    const refused = new Set<string>()
    const places = [...borrower.places]
    for (let at = 0, size = 1; at < places.length; size = refused.size > 0 ? 1 : MAX_LOANS_AT_ONCE) {
      const next = places.slice(at, at + size)
      at += size
      const asked = Promise.all(
        next.map(async (place) => {
          if (place.isHeld && refused.has(place.balancesKey)) this.#answered(place)
          else if (await this.#borrow(place)) refused.add(place.balancesKey)
        }),
      )
      await Promise.race([asked, delay(MAX_ANSWER_MS)])
    }
    borrower.isAsking = false
    if (this.#borrowers.get(userId) === borrower) this.#schedule(userId, borrower, borrower.nextMs)
  }

  /** Resolves to whether the place still waits, because of open holds. */
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
      if (!haveSameBalances(place.payer, payer)) place.payer = payer
      if (refusal && !(refusal instanceof QuotaHeldByOtherCalls)) this.#refuse(place, refusal)
      else if (refusal) return this.#isHeld(place, isReturnable)
      else if (amount <= freeAmount(payer.account, payer.budgets)) {
        this.#remove(place)
        admit(payer)
      }
    } catch (error) {
      if (place.isOpen) this.#refuse(place, error)
    } finally {
      place.isAsking = false
      // The bank may have given it a place again after it had left.
      if (place.hasLeft) this.#accounts.leave(place.order)
    }
    return false
  }

  #isHeld(place: LoanPlace, isReturnable: boolean): boolean {
    if (isReturnable && performance.now() - place.beganMs < RETURN_MS) {
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
  /** Time of the timer, by `performance.now()`. */
  dueAt = 0
  isAsking = false
  /** Time from the end of the requests under way to the next ones. */
  nextMs = ASK_AGAIN_MS
}

function haveSameBalances(one: ChargedBalances, other: ChargedBalances): boolean {
  const { account, budgets } = one
  return (
    account === other.account &&
    budgets.length === other.budgets.length &&
    budgets.every(({ balance }, at) => balance === other.budgets[at]?.balance)
  )
}

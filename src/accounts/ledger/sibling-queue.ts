import { StoreUnavailable } from '../../store/store-unavailable.ts'
import type { AccountSource } from './account-source.ts'
import type { Balance } from './balance.ts'
import { affordableAmount, countPendingWrites, namesOf, type Payer } from './payer.ts'
import { isAffordableAlone, QuotaHeld, refusalOf, type Unaffordable } from './quota-refusal.ts'

/** Interval at which quota is requested from the bank again, because calls of other nodes end without a word. */
const ASK_AGAIN_MS = 100
/** The same after a call of this node has ended. */
const ASK_SOON_MS = 20
/** Maximum number of loans requested at once for one user. */
const MAX_LOANS_AT_ONCE = 16

/** A call, or the growth of a hold, that the holds of other calls prevent. */
export interface Waiting {
  readonly amount: number
  /** Whether it is the growth of a hold; such come first, because their calls are under way. */
  readonly isGrowth: boolean
  /** Takes the amount from these balances, on all of which it is free. */
  readonly admit: (payer: Payer) => void
  /** Called instead of `admit` if no end of another call can help. */
  readonly refuse: (error: unknown) => void
}

/** A call or a growth in the queue. */
export interface Queued {
  /** Ends the wait. */
  leave(): void
  /** Why it waits, or why it need not wait any more. */
  refusal(): Unaffordable
}

/** A place in the queue. */
class Place {
  readonly waiting: Waiting
  #payer: Payer
  isOpen = true

  constructor(waiting: Waiting, payer: Payer) {
    this.waiting = waiting
    this.#payer = payer
    countPendingWrites(payer, 1)
  }

  get payer(): Payer {
    return this.#payer
  }

  /** The balances stay in memory as long as somebody waits for them. */
  set payer(payer: Payer) {
    countPendingWrites(payer, 1)
    countPendingWrites(this.#payer, -1)
    this.#payer = payer
  }

  get isAffordable(): boolean {
    return this.waiting.amount <= affordableAmount(this.#payer.account, this.#payer.budgets)
  }

  get balances(): Balance[] {
    return [this.#payer.account.user, ...this.#payer.budgets.map(({ balance }) => balance)]
  }

  /** Names the balances; of two places with the same, only the amounts differ. */
  get balancesKey(): string {
    return `${this.#payer.account.token.id} ${namesOf(this.#payer.budgets).join(' ')}`
  }

  close(): void {
    this.isOpen = false
    countPendingWrites(this.#payer, -1)
  }
}

/** Those that wait for one balance, in order of arrival. */
class Line {
  readonly #growths = new Set<Place>()
  readonly #calls = new Set<Place>()
  /** Bounds of the amounts, kept while the line is not empty. */
  #least = Number.POSITIVE_INFINITY
  #most = 0

  get size(): number {
    return this.#growths.size + this.#calls.size
  }

  add(place: Place): void {
    const { amount, isGrowth } = place.waiting
    ;(isGrowth ? this.#growths : this.#calls).add(place)
    this.#least = Math.min(this.#least, amount)
    this.#most = Math.max(this.#most, amount)
  }

  delete(place: Place): void {
    ;(place.waiting.isGrowth ? this.#growths : this.#calls).delete(place)
  }

  /** Whether nobody can be admitted, nor be refused for good. */
  isStuck({ free, remain }: Balance): boolean {
    return free < this.#least && remain >= this.#most
  }

  *[Symbol.iterator](): Iterator<Place> {
    yield* this.#growths
    yield* this.#calls
  }
}

/**
 * Calls that wait for the open holds of others, in order of arrival for each balance. A smaller amount may fit
 * before a larger one that came first. Whatever is admitted takes its amount at once, so that nothing is
 * granted twice.
 */
export class SiblingQueue {
  readonly #accounts: Pick<AccountSource, 'lends' | 'borrow'>
  /** Lines by the balances of users and budgets; whoever waits for a token stands in the line of its user. */
  readonly #lines = new Map<Balance, Line>()
  /** Everybody by user, for whom quota is borrowed. */
  readonly #borrowers = new Map<number, Borrower>()

  constructor(accounts: Pick<AccountSource, 'lends' | 'borrow'>) {
    this.#accounts = accounts
  }

  /** Adds a call or a growth that is not affordable now. */
  add(waiting: Waiting, payer: Payer): Queued {
    const place = new Place(waiting, payer)
    this.#enter(place)
    const userId = payer.account.user.id
    const borrower = this.#borrowers.get(userId) ?? new Borrower()
    this.#borrowers.set(userId, borrower)
    borrower.places.add(place)
    if (this.#accounts.lends) this.#schedule(userId, borrower, waiting.isGrowth ? 0 : ASK_AGAIN_MS)
    return {
      leave: () => this.#remove(place),
      refusal: () => refusalOf(place.payer, waiting.amount, Date.now()),
    }
  }

  /** Admits whoever can be, now that quota of these balances is free. */
  released({ account, budgets }: Payer): void {
    if (this.#lines.size === 0) return
    for (const { balance } of budgets) this.#admitFrom(balance)
    this.#admitFrom(account.user)
  }

  /** Tries everybody again, because a balance was changed by hand. */
  retryAll(): void {
    for (const balance of [...this.#lines.keys()]) this.#admitFrom(balance)
  }

  #admitFrom(balance: Balance): void {
    const line = this.#lines.get(balance)
    if (!line) return
    const { lends } = this.#accounts
    for (const place of line) {
      if (!lends && line.isStuck(balance)) return
      if (this.#admitted(place)) continue
      if (lends) this.#askSoon(place)
      else if (!isAffordableAlone(place.payer, place.waiting.amount))
        this.#refuse(place, refusalOf(place.payer, place.waiting.amount, Date.now()))
    }
  }

  #askSoon({ payer }: Place): void {
    const userId = payer.account.user.id
    const borrower = this.#borrowers.get(userId)
    if (borrower) this.#schedule(userId, borrower, ASK_SOON_MS)
  }

  #admitted(place: Place): boolean {
    if (!place.isAffordable) return false
    const { payer, waiting } = place
    this.#remove(place)
    waiting.admit(payer)
    return true
  }

  #refuse(place: Place, error: unknown): void {
    this.#remove(place)
    place.waiting.refuse(error)
  }

  #enter(place: Place): void {
    for (const balance of place.balances) {
      const line = this.#lines.get(balance) ?? new Line()
      this.#lines.set(balance, line)
      line.add(place)
    }
  }

  #exit(place: Place): void {
    for (const balance of place.balances) {
      const line = this.#lines.get(balance)
      line?.delete(place)
      if (line?.size === 0) this.#lines.delete(balance)
    }
  }

  #remove(place: Place): void {
    if (!place.isOpen) return
    this.#exit(place)
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
      borrower.isAskedAgain ||= inMs < ASK_AGAIN_MS
      return
    }
    const dueAt = performance.now() + inMs
    if (borrower.timer && borrower.dueAt <= dueAt) return
    clearTimeout(borrower.timer)
    borrower.dueAt = dueAt
    borrower.timer = setTimeout(() => void this.#ask(userId, borrower), inMs).unref()
  }

  // Loans are requested in order of arrival, and the bank answers in that order. As long as the first is
  // refused, the others are not asked for.
  async #ask(userId: number, borrower: Borrower): Promise<void> {
    borrower.timer = undefined
    borrower.isAsking = true
    borrower.isAskedAgain = false
    /** The smallest amount that was refused on these balances. */
    const refused = new Map<string, number>()
    const places = [...borrower.places].toSorted(byKind)
    for (let at = 0, size = 1; at < places.length; size = refused.size > 0 ? 1 : MAX_LOANS_AT_ONCE) {
      const next = places.slice(at, at + size)
      at += size
      await Promise.all(next.map((place) => this.#borrow(place, refused)))
    }
    borrower.isAsking = false
    if (this.#borrowers.get(userId) === borrower)
      this.#schedule(userId, borrower, borrower.isAskedAgain ? ASK_SOON_MS : ASK_AGAIN_MS)
  }

  async #borrow(place: Place, refused: Map<string, number>): Promise<void> {
    if (!place.isOpen || this.#admitted(place)) return
    const { amount, isGrowth } = place.waiting
    const key = place.balancesKey
    if (amount >= (refused.get(key) ?? Number.POSITIVE_INFINITY)) return
    try {
      const { payer, refusal } = await this.#accounts.borrow(place.payer, amount)
      if (!place.isOpen) return
      this.#exit(place)
      place.payer = payer
      this.#enter(place)
      if (this.#admitted(place) || !refusal) return
      if (!(refusal instanceof QuotaHeld)) return this.#refuse(place, refusal)
      refused.set(key, Math.min(amount, refused.get(key) ?? amount))
    } catch (error) {
      // A stream may be able to grow when the bank can be reached again.
      const goesOn = isGrowth && error instanceof StoreUnavailable
      if (place.isOpen && !goesOn) this.#refuse(place, error)
    }
  }
}

/** Requests for loans on behalf of the waiting calls of one user. */
class Borrower {
  readonly places = new Set<Place>()
  timer: NodeJS.Timeout | undefined
  /** Time of the timer, by `performance.now()`. */
  dueAt = 0
  isAsking = false
  /** Whether a call has ended while loans were being requested. */
  isAskedAgain = false
}

function byKind(one: Place, other: Place): number {
  return Number(other.waiting.isGrowth) - Number(one.waiting.isGrowth)
}

/** What limits the wait of a call. */
export interface Patience {
  readonly waitMs: number
  /** Calls the listener when the client has left; returns a function that removes it. */
  readonly onLeft: (listener: () => void) => () => void
}

/** Maximum delay of a timer. */
const MAX_DELAY_MS = 2 ** 31 - 1

/**
 * Resolves to what `admit` returns once the amount is free on all balances. Rejects with the refusal if that
 * is not before the end of the patience, or cannot be.
 */
export function waitForSiblings<Admitted>(
  queue: SiblingQueue,
  payer: Payer,
  amount: number,
  { waitMs, onLeft }: Patience,
  admit: (payer: Payer) => Admitted,
): Promise<Admitted> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer)
      stopListening()
      queued.leave()
    }
    const refuse = (error: unknown): void => {
      end()
      reject(error as Error)
    }
    const queued = queue.add(
      {
        amount,
        isGrowth: false,
        refuse,
        admit(found) {
          end()
          resolve(admit(found))
        },
      },
      payer,
    )
    const giveUp = (): void => refuse(queued.refusal())
    const stopListening = onLeft(giveUp)
    const timer = setTimeout(giveUp, Math.min(waitMs, MAX_DELAY_MS)).unref()
  })
}

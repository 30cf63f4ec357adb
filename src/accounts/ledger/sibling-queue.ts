import { setTimeout as delay } from 'node:timers/promises'
import type { AccountSource } from './account-source.ts'
import type { Balance } from './balance.ts'
import { affordableAmount, countPendingWrites, namesOf, type Payer } from './payer.ts'
import { heldRefusal, isAffordableAlone, QuotaHeld, refusalOf } from './quota-refusal.ts'

/**
 * Interval between requests for loans. They must be repeated, because the bank does not report when calls of
 * other nodes end.
 */
const ASK_AGAIN_MS = 100
/** Delay of the next request after a call of this node has ended. */
const ASK_SOON_MS = 20
/**
 * Time after which further loans are requested although one is unanswered, for instance because its row is
 * locked.
 */
const MAX_ANSWER_MS = 250
/** Maximum number of loans requested at once for one user. */
const MAX_LOANS_AT_ONCE = 16

/**
 * A call, or the growth of a hold, that waits for other holds to release quota. Growths wait here only if
 * quota is not borrowed.
 */
export interface Waiting {
  readonly amount: number
  /**
   * Whether this is the growth of a hold. Growths take precedence, because their calls are already running.
   */
  readonly isGrowth: boolean
  /** Takes the amount from these balances; it is free on all of them. */
  readonly admit: (payer: Payer) => void
  /** Called instead of `admit` if the end of other calls can no longer make the amount affordable. */
  readonly refuse: (error: unknown) => void
}

/** Handle with which a waiting call or growth is taken out of the queue. */
export interface Queued {
  /** Ends the wait; neither `admit` nor `refuse` is called. */
  leave(): void
  /** Ends the wait with a refusal. If quota is borrowed, waits for the first answer of the bank. */
  expire(): void
}

/** The place of a waiting call or growth in the queue. */
class Place {
  readonly waiting: Waiting
  /** Number of the arrival; later places have higher numbers. */
  readonly order: number
  #payer: Payer
  isOpen = true
  /** Whether a loan is being requested. */
  isAsking = false
  /** Whether the bank has answered, so that the balances are up to date. */
  isAnswered = false
  /** Whether the place is refused with the bank's next answer. */
  isExpired = false

  constructor(waiting: Waiting, payer: Payer, order: number) {
    this.waiting = waiting
    this.order = order
    this.#payer = payer
    countPendingWrites(payer, 1)
  }

  get payer(): Payer {
    return this.#payer
  }

  /** Counts a place as a pending write on its balances, which keeps them in memory. */
  set payer(payer: Payer) {
    countPendingWrites(payer, 1)
    countPendingWrites(this.#payer, -1)
    this.#payer = payer
  }

  get isAffordable(): boolean {
    return this.waiting.amount <= affordableAmount(this.#payer.account, this.#payer.budgets)
  }

  get balances(): Balance[] {
    const { account, budgets } = this.#payer
    return [account.user, account.token, ...budgets.map(({ balance }) => balance)]
  }

  /** The balances on which the amount is not free. */
  get shortBalances(): Balance[] {
    const { account, budgets } = this.#payer
    const { amount } = this.waiting
    const short = budgets
      .filter(({ balance, periodBudget }) => balance.freeUnder(periodBudget.amount) < amount)
      .map(({ balance }) => balance)
    if (account.user.free < amount) short.push(account.user)
    if (!account.unlimited && account.token.free < amount) short.push(account.token)
    return short
  }

  /** Whether this place has its turn before the other one. */
  isBefore({ waiting: { isGrowth }, order }: Place): boolean {
    return this.waiting.isGrowth === isGrowth ? this.order < order : this.waiting.isGrowth
  }

  /** Identifies the balances, so that places with the same balances can be compared by amount. */
  get balancesKey(): string {
    return `${this.#payer.account.token.id} ${namesOf(this.#payer.budgets).join(' ')}`
  }

  close(): void {
    this.isOpen = false
    countPendingWrites(this.#payer, -1)
  }
}

/** The places that wait for one balance, in order of arrival. */
class Line {
  readonly #growths = new Set<Place>()
  readonly #calls = new Set<Place>()
  /** Smallest and largest amounts of the places; reset only when the line becomes empty. */
  #least = Number.POSITIVE_INFINITY
  #most = 0
  /** The highest `order` so far. */
  #latest = 0

  get size(): number {
    return this.#growths.size + this.#calls.size
  }

  add(place: Place): void {
    const { amount, isGrowth } = place.waiting
    const places = isGrowth ? this.#growths : this.#calls
    places.add(place)
    if (place.order < this.#latest) sort(places)
    this.#latest = Math.max(this.#latest, place.order)
    this.#least = Math.min(this.#least, amount)
    this.#most = Math.max(this.#most, amount)
  }

  delete(place: Place): void {
    ;(place.waiting.isGrowth ? this.#growths : this.#calls).delete(place)
  }

  /**
   * Whether nothing can be done for the line: no place can be admitted, and none must be refused. Judged by
   * `#least` and `#most`.
   */
  isStuck(balance: Balance): boolean {
    return this.isShort(balance) && !this.isUsedUp(balance)
  }

  /** Whether no place can be admitted. */
  isShort({ free }: Balance): boolean {
    return free < this.#least
  }

  /** Whether a place must be refused. */
  isUsedUp({ remain }: Balance): boolean {
    return remain < this.#most
  }

  *[Symbol.iterator](): Iterator<Place> {
    yield* this.#growths
    yield* this.#calls
  }
}

/**
 * The places of several lines, each place once, in order of their turns. Stops reading a line once `isStuck`
 * returns true for it.
 */
function* merged(lines: readonly Line[], isStuck: (line: Line) => boolean): Generator<Place> {
  const heads = lines.map((line) => ({
    line,
    places: line[Symbol.iterator](),
    next: undefined as Place | undefined,
  }))
  const advance = (head: (typeof heads)[number]): void => {
    head.next = isStuck(head.line) ? undefined : (head.places.next().value as Place | undefined)
  }
  for (const head of heads) advance(head)
  for (;;) {
    let first: Place | undefined
    for (const { next } of heads) if (next && (!first || next.isBefore(first))) first = next
    if (!first) return
    if (first.isOpen) yield first
    for (const head of heads) if (head.next === first) advance(head)
  }
}

function sort(places: Set<Place>): void {
  const sorted = [...places].toSorted((one, other) => one.order - other.order)
  places.clear()
  for (const place of sorted) places.add(place)
}

/**
 * Calls that wait until other calls release quota, in order of arrival for each balance. A call does not
 * overtake an earlier one that lacks quota of a balance that both need. A call takes its amount when it is
 * admitted, so that nothing is granted twice.
 */
export class SiblingQueue {
  readonly #accounts: Pick<AccountSource, 'lends' | 'borrow'>
  /** The line of each balance. A place is in the line of each of its balances. */
  readonly #lines = new Map<Balance, Line>()
  /** All places, by the id of the user for whom quota is borrowed. */
  readonly #borrowers = new Map<number, Borrower>()
  #arrivals = 0

  constructor(accounts: Pick<AccountSource, 'lends' | 'borrow'>) {
    this.#accounts = accounts
  }

  /** Adds a call or a growth that is not affordable now. */
  add(waiting: Waiting, payer: Payer): Queued {
    const place = new Place(waiting, payer, (this.#arrivals += 1))
    this.#enter(place)
    const userId = payer.account.user.id
    const borrower = this.#borrowers.get(userId) ?? new Borrower()
    this.#borrowers.set(userId, borrower)
    borrower.places.add(place)
    if (this.#accounts.lends) this.#schedule(userId, borrower, 0)
    return { leave: () => this.#leave(place), expire: () => this.#expire(place) }
  }

  /** Admits the calls and growths that are now affordable, after quota of these balances has become free. */
  released({ account, budgets }: Payer): void {
    if (this.#lines.size === 0) return
    const { user, token, unlimited } = account
    const balances = new Map<Line, Balance>()
    const limited = unlimited ? [user] : [user, token]
    for (const balance of [...limited, ...budgets.map((budget) => budget.balance)]) {
      const line = this.#lines.get(balance)
      if (line) balances.set(line, balance)
    }
    if (balances.size === 0) return
    const { lends } = this.#accounts
    const ofUser = this.#lines.get(user)
    this.#admitFrom(
      merged([...balances.keys()], (line) => {
        const balance = balances.get(line)!
        if (lends) return false
        // Everyone who waits for the token also waits for its user.
        return (
          line.isStuck(balance) || (balance === token && !line.isUsedUp(balance) && !!ofUser?.isShort(user))
        )
      }),
    )
  }

  /** Tries to admit all waiting calls and growths again, after an operator has changed a balance. */
  retryAll(): void {
    const places = [...this.#borrowers.values()].flatMap((borrower) => [...borrower.places])
    this.#admitFrom(places.toSorted((one, other) => (one.isBefore(other) ? -1 : 1)))
  }

  #admitFrom(places: Iterable<Place>): void {
    const { lends } = this.#accounts
    /** Balances of which an earlier call lacks quota; later calls must not take it. */
    const awaited = new Set<Balance>()
    const refused: Payer[] = []
    for (const place of places) {
      const isBehind = awaited.size > 0 && place.balances.some((balance) => awaited.has(balance))
      if (!isBehind && this.#admitted(place)) continue
      if (lends) this.#askSoon(place)
      else if (!isAffordableAlone(place.payer, place.waiting.amount)) {
        refused.push(place.payer)
        this.#refuse(place, refusalOf(place.payer, place.waiting.amount, Date.now()))
      } else if (!place.waiting.isGrowth) for (const balance of place.shortBalances) awaited.add(balance)
    }
    // Calls that came later may have waited behind the refused ones, for other balances than these.
    for (const payer of refused) this.released(payer)
  }

  // Later calls may have waited behind the call that leaves.
  #leave(place: Place): void {
    if (!place.isOpen) return
    const { payer, waiting } = place
    this.#remove(place)
    if (!waiting.isGrowth) this.released(payer)
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

  #expire(place: Place): void {
    if (!place.isOpen) return
    place.isExpired = true
    if (this.#accounts.lends && !place.isAnswered) return
    const { payer, waiting } = place
    if (this.#admitted(place)) return
    this.#refuse(place, refusalOf(payer, waiting.amount, Date.now()))
    this.released(payer)
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
      borrower.nextMs = Math.min(borrower.nextMs, inMs)
      return
    }
    const dueAt = performance.now() + inMs
    if (borrower.timer && borrower.dueAt <= dueAt) return
    clearTimeout(borrower.timer)
    borrower.dueAt = dueAt
    borrower.timer = setTimeout(() => void this.#ask(userId, borrower), inMs).unref()
  }

  // Loans are requested in order of arrival, and the bank answers in that order. As long as the first loan is
  // refused, only one is requested at a time.
  async #ask(userId: number, borrower: Borrower): Promise<void> {
    borrower.timer = undefined
    borrower.isAsking = true
    borrower.nextMs = ASK_AGAIN_MS
    /** The smallest amount that the bank refused, by the balances it was requested for. */
    const refused = new Map<string, number>()
    const places = [...borrower.places]
    for (let at = 0, size = 1; at < places.length; size = refused.size > 0 ? 1 : MAX_LOANS_AT_ONCE) {
      const next = places.slice(at, at + size)
      at += size
      const asked = Promise.all(next.map((place) => this.#borrow(place, refused)))
      await Promise.race([asked, delay(MAX_ANSWER_MS)])
    }
    borrower.isAsking = false
    if (this.#borrowers.get(userId) === borrower) this.#schedule(userId, borrower, borrower.nextMs)
  }

  async #borrow(place: Place, refused: Map<string, number>): Promise<void> {
    if (!place.isOpen || place.isAsking || this.#admitted(place)) return
    const { amount } = place.waiting
    const key = place.balancesKey
    if (amount >= (refused.get(key) ?? Number.POSITIVE_INFINITY)) return this.#answered(place)
    place.isAsking = true
    try {
      const { payer, refusal } = await this.#accounts.borrow(place.payer, amount)
      place.isAsking = false
      if (!place.isOpen) return
      this.#moveTo(place, payer)
      if (this.#admitted(place) || !refusal) return
      if (!(refusal instanceof QuotaHeld)) return this.#refuse(place, refusal)
      refused.set(key, Math.min(amount, refused.get(key) ?? amount))
      this.#answered(place)
    } catch (error) {
      if (place.isOpen) this.#refuse(place, error)
    }
  }

  // After a change of the account, a loan may return other balance objects, so the place moves to their
  // lines.
  #moveTo(place: Place, payer: Payer): void {
    if (haveSameBalances(place.payer, payer)) return
    this.#exit(place)
    place.payer = payer
    this.#enter(place)
  }

  #answered(place: Place): void {
    place.isAnswered = true
    if (place.isExpired) this.#refuse(place, heldRefusal(place.payer, place.waiting.amount))
  }
}

/** Requests for loans on behalf of the waiting calls of one user. */
class Borrower {
  readonly places = new Set<Place>()
  timer: NodeJS.Timeout | undefined
  /** Time at which the timer fires, by `performance.now()`. */
  dueAt = 0
  isAsking = false
  /** Time from the end of the running requests to the next ones. */
  nextMs = ASK_AGAIN_MS
}

function haveSameBalances(one: Payer, other: Payer): boolean {
  const { account, budgets } = one
  return (
    account === other.account &&
    budgets.length === other.budgets.length &&
    budgets.every(({ balance }, at) => balance === other.budgets[at]?.balance)
  )
}

/** How long a call waits for quota. */
export interface Patience {
  readonly waitMs: number
  /** Calls the listener when the client has disconnected; returns a function that removes the listener. */
  readonly onLeft: (listener: () => void) => () => void
}

/** Maximum delay of a timer. */
const MAX_DELAY_MS = 2 ** 31 - 1

/**
 * Waits until `amount` is free on all balances; then resolves to the result of `admit`. Rejects with the
 * refusal after `waitMs`, or when the amount can no longer become affordable.
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
      reject(error)
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
    const stopListening = onLeft(() => refuse(heldRefusal(payer, amount)))
    const timer = setTimeout(() => queued.expire(), Math.min(waitMs, MAX_DELAY_MS)).unref()
  })
}

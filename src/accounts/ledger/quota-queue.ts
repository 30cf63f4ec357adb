import { isHoldOfBatch } from '../../domain/hold.ts'
import { type Balance, limitedBalances } from './balance.ts'
import { type CallQueue, QuotaQueueEntry, type QueuedQuotaRequest, type QuotaRequest } from './call-queue.ts'
import { affordableAmount, type ChargedBalances } from './charged-balances.ts'
import { isAffordableWithoutOtherHolds, refusalOfHold } from './quota-refusal.ts'

/** Entry of a waiting call, which is in the line of each balance that the call is charged to. */
class LineEntry extends QuotaQueueEntry {
  get isAffordable(): boolean {
    return this.waiting.amount <= affordableAmount(this.payer.account, this.payer.budgets)
  }

  /**
   * Quota units that each balance must have once all other holds have ended; with less, waiting is useless.
   */
  get amountAlone(): number {
    const { amount, grown } = this.waiting
    // What batches hold counts as spent already.
    return grown && !isHoldOfBatch(grown) ? amount + grown.amount : amount
  }

  get balances(): Balance[] {
    const { account, budgets } = this.payer
    return [account.user, account.token, ...budgets.map(({ balance }) => balance)]
  }

  /** The balances whose free quota is less than the amount. */
  get shortBalances(): Balance[] {
    const { account, budgets } = this.payer
    const { amount } = this.waiting
    const short = budgets
      .filter(({ balance, periodBudget }) => balance.freeAtAmount(periodBudget.amount) < amount)
      .map(({ balance }) => balance)
    return [...short, ...limitedBalances(account).filter(({ free }) => free < amount)]
  }

  /**
   * Whether this entry has its turn before the other one: growths of holds come before calls, then by
   * arrival.
   */
  isBefore({ waiting: { grown }, order }: LineEntry): boolean {
    const isGrowth = this.waiting.grown !== undefined
    return isGrowth === (grown !== undefined) ? this.order < order : isGrowth
  }
}

/** The calls that wait for quota of one balance, in order of arrival. */
class Line {
  readonly #growths = new Set<LineEntry>()
  readonly #calls = new Set<LineEntry>()
  /**
   * Smallest and largest amounts of the waiting calls, in quota units; reset only when the line becomes
   * empty.
   */
  #least = Number.POSITIVE_INFINITY
  #most = 0

  get size(): number {
    return this.#growths.size + this.#calls.size
  }

  add(entry: LineEntry): void {
    this.#of(entry).add(entry)
    this.#least = Math.min(this.#least, entry.waiting.amount)
    this.#most = Math.max(this.#most, entry.amountAlone)
  }

  delete(entry: LineEntry): void {
    this.#of(entry).delete(entry)
  }

  #of({ waiting }: LineEntry): Set<LineEntry> {
    return waiting.grown ? this.#growths : this.#calls
  }

  /**
   * Whether all calls of the line must go on waiting: the smallest amount is not free, but even the largest
   * may become free when holds end.
   */
  isStuck(balance: Balance): boolean {
    return this.isShort(balance) && !this.isUsedUp(balance)
  }

  /** Whether the free quota is less than the smallest amount, so that no call can be admitted. */
  isShort({ free }: Balance): boolean {
    return free < this.#least
  }

  /** Whether the quota that no batch holds is less than the largest amount, so that a call must be refused. */
  isUsedUp({ remain, committed }: Balance): boolean {
    return remain - committed < this.#most
  }

  /** Whether a call that came before this one lacks quota of the balance. */
  isBehind({ order }: LineEntry, balance: Balance): boolean {
    if (balance.isUnlimited || balance.free >= this.#most) return false
    for (const earlier of this.#calls) {
      if (earlier.order >= order) return false
      if (earlier.waiting.amount > balance.free) return true
    }
    return false
  }

  *[Symbol.iterator](): Iterator<LineEntry> {
    yield* this.#growths
    yield* this.#calls
  }
}

/**
 * The entries of several lines, each entry once, in order of their turns. Stops reading a line once `isStuck`
 * returns true for it.
 */
function* merged(lines: readonly Line[], isStuck: (line: Line) => boolean): Generator<LineEntry> {
  const heads = lines.map((line) => ({
    line,
    entries: line[Symbol.iterator](),
    next: undefined as LineEntry | undefined,
  }))
  const advance = (head: (typeof heads)[number]): void => {
    head.next = isStuck(head.line) ? undefined : (head.entries.next().value as LineEntry | undefined)
  }
  for (const head of heads) advance(head)
  for (;;) {
    let first: LineEntry | undefined
    for (const { next } of heads) if (next && (!first || next.isBefore(first))) first = next
    if (!first) return
    if (first.isOpen) yield first
    for (const head of heads) if (head.next === first) advance(head)
  }
}

/**
 * Waiting calls of a process that shares its quota with no other process. If an earlier call waits for a
 * balance, later calls that are charged to that balance wait behind it. A call takes its amount when it is
 * admitted, so that nothing is granted twice.
 */
export class QuotaQueue implements CallQueue {
  /** The waiting calls of each balance. A call is in the lines of all balances that it is charged to. */
  readonly #lines = new Map<Balance, Line>()
  readonly #entries = new Set<LineEntry>()
  #arrivals = 0

  add(waiting: QuotaRequest, payer: ChargedBalances): QueuedQuotaRequest {
    const entry = new LineEntry(waiting, payer, (this.#arrivals += 1))
    this.#entries.add(entry)
    for (const balance of entry.balances) {
      const line = this.#lines.get(balance) ?? new Line()
      this.#lines.set(balance, line)
      line.add(entry)
    }
    return { leave: () => this.#leave(entry), expire: () => this.#expire(entry) }
  }

  released({ account, budgets }: ChargedBalances): void {
    if (this.#lines.size === 0) return
    const { user, token } = account
    const balances = new Map<Line, Balance>()
    for (const balance of [...limitedBalances(account), ...budgets.map((budget) => budget.balance)]) {
      const line = this.#lines.get(balance)
      if (line) balances.set(line, balance)
    }
    if (balances.size === 0) return
    const ofUser = this.#lines.get(user)
    this.#admitFrom(
      merged([...balances.keys()], (line) => {
        const balance = balances.get(line)!
        // Every call that waits for the token also waits for its user, so the user's line is enough.
        return (
          line.isStuck(balance) ||
          (balance === token && !user.isUnlimited && !line.isUsedUp(balance) && !!ofUser?.isShort(user))
        )
      }),
    )
  }

  retryAll(): void {
    this.#admitFrom([...this.#entries].toSorted((one, other) => (one.isBefore(other) ? -1 : 1)))
  }

  #admitFrom(entries: Iterable<LineEntry>): void {
    /** Balances for whose quota an earlier call waits. */
    const awaited = new Set<Balance>()
    const refused: ChargedBalances[] = []
    for (const entry of entries) {
      // The admission of a batch may have admitted or refused it meanwhile.
      if (!entry.isOpen) continue
      const isBehind = awaited.size > 0 && entry.balances.some((balance) => awaited.has(balance))
      if (!isBehind && entry.isAffordable && !this.#isBehind(entry) && this.#admitted(entry)) continue
      if (!isAffordableWithoutOtherHolds(entry.payer, entry.amountAlone)) {
        refused.push(entry.payer)
        this.#refuse(entry)
      } else if (!entry.waiting.grown) for (const balance of entry.shortBalances) awaited.add(balance)
    }
    // Later calls may have waited behind the refused ones, for balances other than the released ones.
    for (const payer of refused) this.released(payer)
  }

  // A call of a group whose budget became free may be in the line of another user, which was not read.
  #isBehind(entry: LineEntry): boolean {
    if (entry.waiting.grown) return false
    return entry.balances.some((balance) => this.#lines.get(balance)?.isBehind(entry, balance))
  }

  // Later calls may have waited behind the call that left, so they are checked again.
  #leave(entry: LineEntry): void {
    if (!entry.isOpen) return
    const { payer, waiting } = entry
    this.#remove(entry)
    if (!waiting.grown) this.released(payer)
  }

  #admitted(entry: LineEntry): boolean {
    if (!entry.isAffordable) return false
    const { payer, waiting } = entry
    this.#remove(entry)
    waiting.admit(payer)
    return true
  }

  #refuse(entry: LineEntry): void {
    const { payer, waiting } = entry
    this.#remove(entry)
    waiting.refuse(refusalOfHold(payer, waiting.amount, Date.now()))
  }

  #expire(entry: LineEntry): void {
    if (!entry.isOpen || this.#admitted(entry)) return
    this.#refuse(entry)
    this.released(entry.payer)
  }

  #remove(entry: LineEntry): void {
    if (!entry.isOpen) return
    for (const balance of entry.balances) {
      const line = this.#lines.get(balance)
      line?.delete(entry)
      if (line?.size === 0) this.#lines.delete(balance)
    }
    this.#entries.delete(entry)
    entry.close()
  }
}

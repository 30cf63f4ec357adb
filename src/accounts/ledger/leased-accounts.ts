import { setTimeout as delay } from 'node:timers/promises'
import { budgetOfStoredHold, parseBudgetList, type PeriodBudget } from '../../domain/budget.ts'
import type { ParkedHold } from '../../domain/records/usage.ts'
import { refuseUnusableKey, tokenStatusAt } from '../../domain/api-key.ts'
import type { ManagedUser } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { AccountName, LoanQueuePlace, LoanResponse, LoanRequest } from '../../store/bank.ts'
import type { TokenChange } from '../../store/operations/tokens.ts'
import type { UserChange } from '../../store/operations/users.ts'
import type { TokenWithKey } from '../../store/operations/find-accounts.ts'
import { StoreUnavailable } from '../../store/store-unavailable.ts'
import type { RowStore } from '../../store/store.ts'
import type { AccountSource, LoanOutcome, TokenWithAccount } from './account-source.ts'
import { type Account, type Balance, limitedBalances } from './balance.ts'
import type { BankClient } from './bank-client.ts'
import type { LeasedBalance } from './leased-balance.ts'
import type { OpenHold } from './open-hold.ts'
import {
  affordableAmount,
  type ChargedBudget,
  affordableAmountInTurn,
  NO_BUDGETS,
  type ChargedBalances,
  withoutStatedAmounts,
} from './charged-balances.ts'
import { QuotaHeldByOtherCalls, refusalOfHold } from './quota-refusal.ts'

/**
 * Milliseconds to wait, after each loan that did not suffice, for other nodes to return spare quota; the longer
 * waits are for nodes on busy machines.
 */
const RECALL_WAITS_MS = [100, 200, 400]
/** Milliseconds between attempts to borrow what open holds lack. */
const RENEWAL_RETRY_MS = 250
/** Maximum number of loans for one call. Other calls may spend the quota of a loan before this call does. */
const MAX_LOANS = 3
const NOTHING: typeof affordableAmountInTurn = () => Number.NEGATIVE_INFINITY
const TAKEN = 'other calls took the quota that was leased for this one'

/** A token's account, whose quota the bank has lent to this node. */
class LeasedAccount implements Account {
  readonly token: LeasedBalance
  readonly user: LeasedBalance
  /** Budgets of the latest call, for which the next loan is taken as well. */
  budgets = NO_BUDGETS
  isRenewing = false

  constructor(token: LeasedBalance, user: LeasedBalance) {
    this.token = token
    this.user = user
  }
}

/** What a loan is for. */
interface LoanPurpose {
  readonly place?: Omit<LoanQueuePlace, 'amount'> | undefined
  readonly isUnderWay?: boolean
}

/**
 * Accounts of one node in a cluster. The node spends quota that the bank (the shared database) has lent to
 * it.
 */
export class LeasedAccounts implements AccountSource {
  readonly lends = true
  readonly #rows: Pick<RowStore, 'write'>
  readonly #bankClient: BankClient
  /** Asks the other nodes to release their spare quota of an account. */
  readonly #recall: (account: AccountName) => Promise<void>
  /** Cached accounts by token id. An account that may have changed is evicted. */
  readonly #accounts = new Map<number, LeasedAccount>()
  readonly #lookups = new Map<string, Promise<TokenWithAccount | undefined>>()
  readonly #renewals = new Set<LeasedAccount>()
  readonly #openHolds: () => Iterable<OpenHold>
  /** Accounts that were changed or recalled while they had open holds; these are covered in a later turn. */
  readonly #uncovered = new Set<AccountName>()
  /** Open holds for which quota is being borrowed, by the names of all their accounts. */
  readonly #covering = new Map<string, 'asking' | 'again' | 'failed'>()
  /** Counts changes, so that an account read before a change is not cached after it. */
  #changeCount = 0

  constructor(
    rows: Pick<RowStore, 'write'>,
    bankClient: BankClient,
    recall: (account: AccountName) => Promise<void>,
    openHolds: () => Iterable<OpenHold>,
  ) {
    this.#rows = rows
    this.#bankClient = bankClient
    this.#recall = recall
    this.#openHolds = openHolds
    bankClient.onEvicted = (names) => {
      for (const name of names) this.#evict(name)
    }
    bankClient.leases.onRecalled = (name) => this.#onRecalled(name)
  }

  get(tokenId: number): Account | undefined {
    const account = this.#accounts.get(tokenId)
    if (account && !account.isRenewing && isLow(account)) this.#scheduleRenewal(account)
    return account
  }

  budgets({ token }: Account, periodBudgets: readonly PeriodBudget[]): readonly ChargedBudget[] {
    const account = this.#accounts.get(token.id)
    const budgets = periodBudgets.length === 0 ? NO_BUDGETS : this.#chargedBudgets(periodBudgets)
    if (account) account.budgets = budgets
    return budgets
  }

  // Nothing needs to be loaded: quota that is not leased yet is borrowed when a call needs it.
  loadBudgets(): Promise<void> {
    return Promise.resolve()
  }

  #chargedBudgets(periodBudgets: readonly PeriodBudget[]): readonly ChargedBudget[] {
    const { leases } = this.#bankClient
    return periodBudgets.map((one) => ({ periodBudget: one, balance: leases.getOrCreate(one.name) }))
  }

  async load(tokenId: number): Promise<Account | undefined> {
    return (await this.#acquire(() => firstLoan(tokenId)))?.account
  }

  findByKeyHash(keyHash: string): Promise<TokenWithAccount | undefined> {
    let lookup = this.#lookups.get(keyHash)
    if (!lookup) {
      lookup = this.#findAccount(keyHash).finally(() => this.#lookups.delete(keyHash))
      this.#lookups.set(keyHash, lookup)
    }
    return lookup
  }

  /** The balances of a hold that an earlier run has parked. The bank is not asked for them. */
  balancesOfParkedHold({
    token_id: tokenId,
    user_id: userId,
    budgets,
  }: Pick<ParkedHold, 'token_id' | 'user_id' | 'budgets'>): ChargedBalances {
    const { leases } = this.#bankClient
    return {
      account: new LeasedAccount(leases.getOrCreate(`t:${tokenId}`), leases.getOrCreate(`u:${userId}`)),
      budgets: this.#chargedBudgets(parseBudgetList(budgets).map(budgetOfStoredHold)),
    }
  }

  async ensureAffordable(initial: ChargedBalances, amount: number): Promise<ChargedBalances> {
    let payer = initial
    for (let recalls = 0; ; recalls += 1) {
      const { payer: acquired, refusal } = await this.#borrow(payer, amount)
      payer = acquired
      if (amount <= affordableAmountInTurn(payer.account, payer.budgets)) return payer
      if (refusal && !(refusal instanceof QuotaHeldByOtherCalls)) throw refusal
      const waitMs = RECALL_WAITS_MS[recalls]
      if (waitMs === undefined) throw refusal ?? new StoreUnavailable(TAKEN)
      await delay(waitMs)
    }
  }

  async coverHolds(hold: ChargedBalances): Promise<void> {
    const payer = withoutStatedAmounts(hold)
    for (const waitMs of [...RECALL_WAITS_MS, 0]) {
      const { refusal, isReturnable } = await this.#borrow(payer, 0, { isUnderWay: true })
      if (!refusal) return
      if (!isReturnable) break
      await delay(waitMs)
    }
    // Other nodes may borrow at the same time.
    for (let loans = 0; loans < MAX_LOANS; loans += 1)
      if ((await this.#acquire(() => coverFor(payer)))?.loan.granted) return
  }

  borrow(
    payer: ChargedBalances,
    amount: number,
    place?: Omit<LoanQueuePlace, 'amount'>,
  ): Promise<LoanOutcome> {
    return this.#borrow(payer, amount, { place })
  }

  borrowForHold(hold: ChargedBalances, by: number): Promise<LoanOutcome> {
    return this.#borrow(withoutStatedAmounts(hold), by, { isUnderWay: true })
  }

  async #borrow(
    initial: ChargedBalances,
    amount: number,
    { place: of, isUnderWay = false }: LoanPurpose = {},
  ): Promise<LoanOutcome> {
    // The first loan states the amounts of the budgets. They may have changed before the call asks again.
    const periodBudgets = withoutStatedAmounts(initial).budgets.map((budget) => budget.periodBudget)
    let payer = initial
    // Once a call has a place in the bank's queue, only the bank admits it.
    let free = of ? (of.order === undefined ? affordableAmount : NOTHING) : affordableAmountInTurn
    for (let loans = 0; loans < MAX_LOANS; loans += 1) {
      const asking = payer
      if (amount <= free(asking.account, asking.budgets)) return { payer }
      const { user: payingUser } = asking.account
      // No loan helps.
      if (payingUser.isUnlimited && amount > payingUser.holdable)
        return { payer, refusal: refusalOfHold(asking, amount, Date.now()) }
      const acquired = await this.#acquire(
        () => ({ ...loanFor(asking, amount, of && { ...of, amount }), isUnderWay }),
        of && balancesOf(asking).map((balance) => balance.account),
      )
      if (!acquired) throw new GatewayError('invalid_api_key', 'this API key is unknown')
      const { loan, account } = acquired
      const { token, user, isReturnable, order } = loan
      payer = { account, budgets: this.#chargedBudgets(periodBudgets) }
      free = affordableAmountInTurn
      if (loan.granted) continue
      const nowMs = Date.now()
      if (!isUnderWay) refuseUnusableKey(token, user, tokenStatusAt(token, token.remain_quota, nowMs), 'call')
      const refusal = refusalOfHold(payer, amount, nowMs)
      if (refusal instanceof QuotaHeldByOtherCalls) await this.#recallShort(payer, amount, of !== undefined)
      return { payer, refusal, isReturnable, order }
    }
    return { payer }
  }

  leave(ticket: number): void {
    this.#bankClient.leaveQueue(ticket)
  }

  released(payer: ChargedBalances): void {
    if (balancesOf(payer).some(({ isAwaited }) => isAwaited)) this.#bankClient.reportSoon()
  }

  // Other nodes are asked to return quota that they do not need. If a call of this node waits, this node's
  // own free quota is also reserved for the call whose turn it is.
  async #recallShort(payer: ChargedBalances, amount: number, isWaiting: boolean): Promise<void> {
    const short = balancesOf(payer).filter(({ accountFree }) => accountFree < amount)
    if (isWaiting) for (const balance of short) balance.markAwaited()
    await Promise.all(short.map(({ account }) => this.#recall(account).catch(() => {})))
  }

  async changeUser(change: UserChange): Promise<ManagedUser | undefined> {
    if (change.quota) await this.#bankClient.flush()
    const changed = await this.#rows.write('changeUser', change)
    await this.#refresh(`u:${change.userId}`)
    return changed?.user
  }

  async changeToken(change: TokenChange): Promise<TokenWithKey | undefined> {
    if (change.fields.remain_quota !== undefined) await this.#bankClient.flush()
    const changed = await this.#rows.write('changeToken', change)
    await this.#refresh(`t:${change.tokenId}`)
    return changed ?? undefined
  }

  /** Handles a change of an account on any node: the account and its lease are read again. */
  onChanged(name: AccountName): void {
    this.#bankClient.leases.markUnsynced([name])
    this.forget(name)
  }

  /** Handles changes that may have been missed: every account is read again. */
  onAllChanged(): void {
    this.#changeCount += 1
    this.#accounts.clear()
    void this.#bankClient.resync()
  }

  /** Evicts the account of a token, or those of all tokens of a user. */
  forget(name: AccountName): void {
    this.#changeCount += 1
    this.#onRecalled(name)
  }

  #evict(name: string): void {
    // Accounts of budgets are not cached in this class: each call looks them up.
    if (name.startsWith('b:')) return
    const id = Number(name.slice(2))
    if (name.startsWith('t:')) this.#accounts.delete(id)
    else for (const [tokenId, { user }] of this.#accounts) if (user.id === id) this.#accounts.delete(tokenId)
  }

  async #findAccount(keyHash: string): Promise<TokenWithAccount | undefined> {
    const acquired = await this.#acquire(() => firstLoan({ keyHash }))
    return acquired && { token: acquired.loan.token, user: acquired.loan.user, account: acquired.account }
  }

  // An account that changed during the request is not cached.
  async #acquire(
    request: () => LoanRequest,
    waitsFor?: readonly AccountName[],
  ): Promise<{ readonly loan: LoanResponse; readonly account: LeasedAccount } | undefined> {
    const changeCount = this.#changeCount
    const loan = await this.#bankClient.acquire(request, waitsFor)
    if (!loan) return undefined
    const tokenId = loan.token.id
    if (changeCount !== this.#changeCount) return { loan, account: this.#toAccount(loan, undefined) }
    const account = this.#toAccount(loan, this.#accounts.get(tokenId))
    this.#accounts.set(tokenId, account)
    return { loan, account }
  }

  #toAccount(
    { token, user, tokenState, userState }: LoanResponse,
    cached: LeasedAccount | undefined,
  ): LeasedAccount {
    const { leases } = this.#bankClient
    const tokenBalance = leases.getOrCreate(tokenState.account)
    const userBalance = leases.getOrCreate(userState.account)
    // A running call keeps balances that were evicted, so the balances have it, not the account.
    tokenBalance.isUnlimited = token.unlimited_quota
    userBalance.isUnlimited = user.unlimited_quota
    if (cached?.token === tokenBalance && cached.user === userBalance) return cached
    return new LeasedAccount(tokenBalance, userBalance)
  }

  // Evicts a changed account and fetches its new state from the bank. Charges made before the change still
  // count.
  async #refresh(name: AccountName): Promise<void> {
    this.forget(name)
    if (this.#bankClient.leases.get(name)) await this.#bankClient.resync()
  }

  // Borrows more quota in a later turn of the event loop, so that the call that noticed the need does not
  // wait.
  #scheduleRenewal(account: LeasedAccount): void {
    account.isRenewing = true
    if (this.#renewals.size === 0) setImmediate(() => this.#renewAll())
    this.#renewals.add(account)
  }

  #renewAll(): void {
    for (const account of this.#renewals) {
      void this.#acquire(() => renewalFor(account))
        .catch(() => {})
        .finally(() => {
          account.isRenewing = false
        })
    }
    this.#renewals.clear()
  }

  // A recalled token or user is read again before its next call, because it may have become limited. Running calls
  // go on, so what they hold is borrowed again.
  #onRecalled(name: AccountName): void {
    this.#evict(name)
    this.#uncover(name)
  }

  #uncover(name: AccountName): void {
    const balance = this.#bankClient.leases.get(name)
    if (!balance || balance.held <= 0) return
    if (this.#uncovered.size === 0) setImmediate(() => this.#coverAll())
    this.#uncovered.add(name)
  }

  // One hold of each account is enough, because all that the holds of an account lack is borrowed together. If that
  // fails, because its key is locked or unknown, the next hold borrows for the user and the budgets of both.
  #coverAll(): void {
    if (this.#bankClient.isClosed) return
    // Nothing can be borrowed for any hold.
    if (!this.#bankClient.isConnected) {
      setTimeout(() => this.#coverAll(), RENEWAL_RETRY_MS).unref()
      return
    }
    const uncovered = new Set(this.#uncovered)
    this.#uncovered.clear()
    for (const hold of this.#openHolds()) {
      if (uncovered.size === 0) return
      const names = accountsOf(hold)
      const isFailed = this.#covering.get(names.join(' ')) === 'failed'
      if (hold.amount <= 0 || isFailed || !names.some((name) => uncovered.has(name))) continue
      for (const name of names) uncovered.delete(name)
      void this.#cover(hold, names)
    }
  }

  async #cover(hold: OpenHold, names: readonly AccountName[]): Promise<void> {
    const key = names.join(' ')
    if (this.#covering.has(key)) {
      this.#covering.set(key, 'again')
      return
    }
    this.#covering.set(key, 'asking')
    const isBorrowed = await this.#borrowMissing(hold)
    if (!isBorrowed) {
      this.#covering.set(key, 'failed')
      for (const name of names) this.#uncover(name)
    }
    await delay(RENEWAL_RETRY_MS, undefined, { ref: false })
    const isDone = this.#covering.get(key) === 'asking'
    this.#covering.delete(key)
    // For an unknown token, nothing can be borrowed later either. A state of the bank with more quota says 'again'.
    if (!isDone && isBorrowed !== undefined) for (const name of names) this.#uncover(name)
  }

  /** Borrows what the holds lack. Resolves to false if the bank did not answer, and to undefined for an unknown token. */
  async #borrowMissing({ account: { token }, budgets }: OpenHold): Promise<boolean | undefined> {
    try {
      // The token or the user may have become limited.
      const account = (await this.#acquire(() => lookUp(token.id)))?.account
      if (!account) return undefined
      if (balancesOf({ account, budgets }).some(({ free }) => free < 0))
        await this.coverHolds({ account, budgets })
      else if (!account.isRenewing) this.#scheduleRenewal(account)
      return true
    } catch {
      return false
    }
  }
}

/** The names of all accounts that a hold is on. */
function accountsOf({ account: { token, user }, budgets }: ChargedBalances): AccountName[] {
  const balances = [token, user, ...budgets.map(({ balance }) => balance)] as LeasedBalance[]
  return balances.map(({ account }) => account)
}

/** The balances that may refuse a call. */
function balancesOf({ account, budgets }: ChargedBalances): LeasedBalance[] {
  return [...limitedBalances(account), ...budgets.map(({ balance }) => balance)] as LeasedBalance[]
}

function isLow(account: LeasedAccount): boolean {
  const limited = limitedBalances(account)
  if (limited.some(({ isScarce }) => isScarce)) return false
  return (
    limited.some((balance) => balance.isLow) ||
    account.budgets.some(({ balance }) => isLeasedLow(balance as LeasedBalance))
  )
}

function isLeasedLow(balance: LeasedBalance): boolean {
  return balance.isLow && !balance.isScarce
}

/** Number of calls for which a loan of quota from the bank should last. */
const CALLS_PER_LOAN = 64
/** Maximum first loan of an account in quota units, while the typical cost of its calls is unknown. */
const FIRST_LOAN_MAX = 3_200_000

/** Builds a request that borrows nothing, and returns the present state of a token. */
function lookUp(token: number): LoanRequest {
  return { token, isLookUp: true, need: { token: 0, user: 0 }, max: { token: 0, user: 0 } }
}

/** Builds the request for the first loan of a token. */
function firstLoan(token: LoanRequest['token']): LoanRequest {
  const max = { token: FIRST_LOAN_MAX, user: FIRST_LOAN_MAX }
  return { token, isLookUp: true, need: { token: 0, user: 0 }, max }
}

/**
 * Builds the request for a loan that no call waits for. It states no amounts of budgets, because they may have
 * changed since the latest call.
 */
function renewalFor(account: LeasedAccount): LoanRequest {
  const loan = loanFor(withoutStatedAmounts({ account, budgets: account.budgets }), 0)
  // A key or a user may have become limited to less than the calls hold. They then need all that there is.
  const token = Math.min(loan.need.token, account.token.lendable)
  const user = Math.min(loan.need.user, account.user.lendable)
  return { ...loan, need: { token, user } }
}

/** Builds the request for a loan of what open holds lack, as far as the bank has it. */
function coverFor(payer: ChargedBalances): LoanRequest {
  const loan = loanFor(withoutStatedAmounts(payer), 0)
  const most = (need: number, balance: Balance): number => Math.min(need, (balance as LeasedBalance).lendable)
  const { token, user } = payer.account
  const need = { token: most(loan.need.token, token), user: most(loan.need.user, user) }
  const budgets = payer.budgets.map(({ periodBudget, balance }) => {
    const ofBudget = most(Math.max(0, -balance.free), balance)
    return { account: periodBudget.name, amount: 0, need: ofBudget, max: ofBudget }
  })
  return { ...loan, need, max: need, budgets, isUnderWay: true }
}

/** Builds the request for a loan that covers `amount`, and further calls if possible. */
function loanFor(
  { account: { token, user }, budgets }: ChargedBalances,
  amount: number,
  place?: LoanQueuePlace,
): LoanRequest {
  // While calls wait at the bank for an account, its free quota is reserved for the first of them.
  const need = ({ free, isAwaited, isUnlimited }: Balance): number =>
    isUnlimited ? 0 : Math.max(0, Math.ceil(amount - (place && isAwaited ? Math.min(0, free) : free)))
  const max = ({ typicalHold, free, isUnlimited }: LeasedBalance): number =>
    isUnlimited ? 0 : Math.max(0, Math.ceil(CALLS_PER_LOAN * Math.max(typicalHold, amount) - free))
  return {
    token: token.id,
    need: { token: need(token), user: need(user) },
    max: { token: max(token as LeasedBalance), user: max(user as LeasedBalance) },
    budgets: budgets.map(({ periodBudget, balance }) => ({
      account: periodBudget.name,
      amount: periodBudget.amount,
      need: need(balance),
      max: max(balance as LeasedBalance),
    })),
    place,
  }
}

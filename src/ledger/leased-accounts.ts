import { setTimeout as delay } from 'node:timers/promises'
import type { ManagedUser } from '../domain/profile.ts'
import { refuseUnusableKey } from '../domain/key-checks.ts'
import { statusAt } from '../domain/token-status.ts'
import { GatewayError } from '../errors.ts'
import type { AccountName, Loan, LoanRequest } from '../store/bank.ts'
import type { TokenChange } from '../store/operations/change-token.ts'
import type { UserChange } from '../store/operations/change-user.ts'
import type { KeyedToken } from '../store/operations/keyed-tokens.ts'
import type { Rows } from '../store/store.ts'
import type { AccountSource, FoundAccount } from './account-source.ts'
import { type Account, affordable, InsufficientQuota } from './balance.ts'
import type { LeasedBalance } from './leased-balance.ts'
import type { BankClient } from './bank-client.ts'

/** Number of calls that a loan is to last for, and the number left at which the next loan is requested. */
const CALLS_PER_LOAN = 64
const RENEW_AT_CALLS = 16
/** Largest first loan, in quota units, while no hold of the account is known. */
const FIRST_LOAN_MAX = 3_200_000
/** Times that other nodes have to release their spare quota, the later ones for nodes on busy machines. */
const RECALL_WAITS_MS = [100, 200, 400]
/** Maximum number of loans for one call: other calls may spend each of them first. */
const MAX_LOANS = 3

/** A token's account with leased balances. */
interface LeasedAccount extends Account {
  readonly token: LeasedBalance
  readonly user: LeasedBalance
  /** Set while the bank has so little left that quota is leased call by call. */
  isScarce: boolean
  isRenewing: boolean
}

/** Accounts of one node in a cluster, which spends what it has leased. */
export class LeasedAccounts implements AccountSource {
  readonly #rows: Pick<Rows, 'write'>
  readonly #bankClient: BankClient
  /** Asks the other nodes to release their spare quota of an account. */
  readonly #recall: (account: AccountName) => Promise<void>
  /** Accounts that are not known to have changed. */
  readonly #accounts = new Map<number, LeasedAccount>()
  readonly #lookups = new Map<string, Promise<FoundAccount | undefined>>()
  readonly #renewals = new Set<LeasedAccount>()
  /** Counts changes, so that an account read before a change is not cached after it. */
  #changeCount = 0

  constructor(
    rows: Pick<Rows, 'write'>,
    bankClient: BankClient,
    recall: (account: AccountName) => Promise<void>,
  ) {
    this.#rows = rows
    this.#bankClient = bankClient
    this.#recall = recall
    bankClient.onEvicted = (names) => {
      for (const name of names) this.#evict(name)
    }
  }

  get(tokenId: number): Account | undefined {
    const account = this.#accounts.get(tokenId)
    if (account && !account.isRenewing && !account.isScarce && isLow(account)) this.#scheduleRenewal(account)
    return account
  }

  async load(tokenId: number): Promise<Account | undefined> {
    return (await this.#acquire(firstLoan(tokenId)))?.account
  }

  findByKeyHash(keyHash: string): Promise<FoundAccount | undefined> {
    let lookup = this.#lookups.get(keyHash)
    if (!lookup) {
      lookup = this.#findAccount(keyHash).finally(() => this.#lookups.delete(keyHash))
      this.#lookups.set(keyHash, lookup)
    }
    return lookup
  }

  async ensureAffordable(initial: Account, amount: number): Promise<Account> {
    let account = initial
    let recalls = 0
    for (let loans = 0; loans < MAX_LOANS; ) {
      if (amount <= affordable(account)) return account
      const acquired = await this.#acquire(loanFor(account, amount))
      if (!acquired) throw new GatewayError('invalid_api_key', 'this API key is unknown')
      const { loan } = acquired
      const { token, user } = loan
      account = acquired.account
      if (loan.granted) {
        loans += 1
        continue
      }
      refuseUnusableKey(token, user, statusAt(token, token.remainQuota, Date.now()), 'call')
      const waitMs = RECALL_WAITS_MS[recalls]
      if (waitMs === undefined || !isCovered(loan, account, amount))
        throw new InsufficientQuota(totalFree(loan, account), amount)
      recalls += 1
      await this.#recallShortage(loan, account, amount)
      await delay(waitMs)
    }
    return account
  }

  async changeUser(change: UserChange): Promise<ManagedUser | undefined> {
    if (change.quota) await this.#bankClient.flush()
    const changed = await this.#rows.write('changeUser', change)
    await this.#refresh(`u:${change.userId}`)
    return changed?.user
  }

  async changeToken(change: TokenChange): Promise<KeyedToken | undefined> {
    if (change.fields.remainQuota !== undefined) await this.#bankClient.flush()
    const changed = await this.#rows.write('changeToken', change)
    await this.#refresh(`t:${change.tokenId}`)
    return changed ?? undefined
  }

  /**
   * Handles a change of an account on any node: it is read again at its next use. A new epoch voids its
   * lease.
   */
  onChanged(name: AccountName, epoch: number): void {
    const balance = this.#bankClient.leases.get(name)
    if (balance?.advanceEpoch(epoch) && balance.held > 0) this.#renewLease(name)
    this.forget(name)
  }

  /** Handles changes that may have been missed: every account is read again. */
  onAllChanged(): void {
    this.#changeCount += 1
    this.#accounts.clear()
    void this.#bankClient.resync()
  }

  /** Evicts a token's account, or those of all tokens of a user. */
  forget(name: string): void {
    this.#changeCount += 1
    this.#evict(name)
  }

  #evict(name: string): void {
    const id = Number(name.slice(2))
    if (name.startsWith('t:')) this.#accounts.delete(id)
    else for (const [tokenId, { user }] of this.#accounts) if (user.id === id) this.#accounts.delete(tokenId)
  }

  async #findAccount(keyHash: string): Promise<FoundAccount | undefined> {
    const acquired = await this.#acquire(firstLoan({ keyHash }))
    return acquired && { token: acquired.loan.token, user: acquired.loan.user, account: acquired.account }
  }

  // An account that changed during the request is not cached.
  async #acquire(
    request: LoanRequest,
  ): Promise<{ readonly loan: Loan; readonly account: LeasedAccount } | undefined> {
    const changeCount = this.#changeCount
    const loan = await this.#bankClient.acquire(request)
    if (!loan) return undefined
    const tokenId = loan.token.id
    if (changeCount !== this.#changeCount) return { loan, account: this.#toAccount(loan, undefined) }
    const account = this.#toAccount(loan, this.#accounts.get(tokenId))
    this.#accounts.set(tokenId, account)
    return { loan, account }
  }

  #toAccount({ token, tokenState, userState }: Loan, cached: LeasedAccount | undefined): LeasedAccount {
    const { leases } = this.#bankClient
    const [tokenBalance, userBalance] = [leases.getOrCreate(tokenState), leases.getOrCreate(userState)]
    const unlimited = token.unlimitedQuota
    const isScarce =
      userState.free < 8 * userBalance.typicalHold ||
      (!unlimited && tokenState.free < 8 * tokenBalance.typicalHold)
    if (cached?.token !== tokenBalance || cached.user !== userBalance) {
      return { token: tokenBalance, user: userBalance, unlimited, isScarce, isRenewing: false }
    }
    cached.unlimited = unlimited
    cached.isScarce = isScarce
    return cached
  }

  // Evicts a changed account and fetches its new epoch from the bank; earlier charges stay.
  async #refresh(name: AccountName): Promise<void> {
    this.forget(name)
    if (this.#bankClient.leases.get(name)) await this.#bankClient.resync()
  }

  async #recallShortage(
    { tokenState, userState }: Loan,
    { token, user, unlimited }: Account,
    amount: number,
  ): Promise<void> {
    const shortages: AccountName[] = []
    if (!unlimited && tokenState.free + token.free < amount) shortages.push(tokenState.account)
    if (userState.free + user.free < amount) shortages.push(userState.account)
    await Promise.all(shortages.map((account) => this.#recall(account).catch(() => {})))
  }

  // Renews in a later turn, so that the call that found the account low does not wait.
  #scheduleRenewal(account: LeasedAccount): void {
    account.isRenewing = true
    if (this.#renewals.size === 0) setImmediate(() => this.#renewAll())
    this.#renewals.add(account)
  }

  #renewAll(): void {
    for (const account of this.#renewals) {
      void this.#acquire(loanFor(account, 0))
        .catch(() => {})
        .finally(() => {
          account.isRenewing = false
        })
    }
    this.#renewals.clear()
  }

  // Renews a lease of a recalled account that has open holds, as far as the bank has quota left.
  #renewLease(name: AccountName): void {
    for (const account of this.#accounts.values()) {
      if (account.token.account !== name && account.user.account !== name) continue
      if (!account.isRenewing) this.#scheduleRenewal(account)
      return
    }
  }
}

function firstLoan(token: LoanRequest['token']): LoanRequest {
  return { token, need: { token: 0, user: 0 }, max: { token: FIRST_LOAN_MAX, user: FIRST_LOAN_MAX } }
}

/** Builds the request for a loan that affords `amount`, and further calls if possible. */
function loanFor({ token, user, unlimited }: Account, amount: number): LoanRequest {
  const need = (free: number): number => Math.max(0, Math.ceil(amount - free))
  const max = (balance: LeasedBalance): number =>
    Math.max(0, Math.ceil(CALLS_PER_LOAN * Math.max(balance.typicalHold, amount) - balance.free))
  return {
    token: token.id,
    need: { token: unlimited ? 0 : need(token.free), user: need(user.free) },
    max: { token: unlimited ? 0 : max(token as LeasedBalance), user: max(user as LeasedBalance) },
  }
}

function isLow({ token, user, unlimited }: LeasedAccount): boolean {
  return (
    user.free < RENEW_AT_CALLS * user.typicalHold ||
    (!unlimited && token.free < RENEW_AT_CALLS * token.typicalHold)
  )
}

/** Whether the balances cover `amount` once other nodes have returned what they do not need. */
function isCovered({ tokenState, userState }: Loan, { unlimited }: Account, amount: number): boolean {
  return userState.remain >= amount && (unlimited || tokenState.remain >= amount)
}

/** Free quota of an account, on this node and in the bank. */
function totalFree({ tokenState, userState }: Loan, { token, user, unlimited }: Account): number {
  const userFree = userState.free + user.free
  return unlimited ? userFree : Math.min(userFree, tokenState.free + token.free)
}

import { setTimeout as delay } from 'node:timers/promises'
import type { ManagedUser } from '../domain/profile.ts'
import { refuseUnusableKey } from '../domain/refuse-unusable-key.ts'
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

/** Calls that a loan is to last for, at most, and with how many of them left the next is asked for. */
const CALLS_LENT = 64
const CALLS_LEFT = 16
/** A first loan is taken before anybody knows what a call on it holds. */
const FIRST_MOST = 3_200_000
/** How long other nodes have to give back what they do not need. */
const RECALL_MS = 100
/** Loans that one call takes before it gives up: others may be faster to spend each of them. */
const LOANS = 3

/** A token's account, from the bank. */
interface LeasedAccount extends Account {
  readonly token: LeasedBalance
  readonly user: LeasedBalance
  /** The bank has so little that it is lent call by call. */
  isPoor: boolean
  isRenewing: boolean
}

/** The accounts of one node among many: it spends what it has borrowed. */
export class LeasedAccounts implements AccountSource {
  readonly #rows: Pick<Rows, 'write'>
  readonly #teller: BankClient
  /** Asks the other nodes to give back what they do not need of an account. */
  readonly #recall: (account: AccountName) => Promise<void>
  /** Those of which nothing is known to have changed. */
  readonly #accounts = new Map<number, LeasedAccount>()
  readonly #finding = new Map<string, Promise<FoundAccount | undefined>>()
  readonly #low = new Set<LeasedAccount>()
  /** Moves whenever something was changed: what was asked for before is not remembered after. */
  #changes = 0

  constructor(rows: Pick<Rows, 'write'>, teller: BankClient, recall: (account: AccountName) => Promise<void>) {
    this.#rows = rows
    this.#teller = teller
    this.#recall = recall
    teller.onEvicted = (names) => {
      for (const name of names) this.#drop(name)
    }
  }

  get(tokenId: number): Account | undefined {
    const account = this.#accounts.get(tokenId)
    if (account && !account.isRenewing && !account.isPoor && isLow(account)) this.#renewSoon(account)
    return account
  }

  async load(tokenId: number): Promise<Account | undefined> {
    return (await this.#lend(firstLoan(tokenId)))?.account
  }

  findByKeyHash(keyHash: string): Promise<FoundAccount | undefined> {
    let finding = this.#finding.get(keyHash)
    if (!finding) {
      finding = this.#find(keyHash).finally(() => this.#finding.delete(keyHash))
      this.#finding.set(keyHash, finding)
    }
    return finding
  }

  async ensureAffordable(given: Account, amount: number): Promise<Account> {
    let account = given
    let hasRecalled = false
    for (let loans = 0; loans < LOANS; ) {
      if (amount <= affordable(account)) return account
      const lent = await this.#lend(loanFor(account, amount))
      if (!lent) throw new GatewayError('invalid_api_key', 'this API key is unknown')
      const { loan } = lent
      const { token, user } = loan
      account = lent.account
      if (loan.granted) {
        loans += 1
        continue
      }
      refuseUnusableKey(token, user, statusAt(token, token.remainQuota, Date.now()), 'call')
      if (hasRecalled) throw new InsufficientQuota(within(loan, account), amount)
      hasRecalled = true
      await this.#recallFor(loan, account, amount)
    }
    return account
  }

  async changeUser(change: UserChange): Promise<ManagedUser | undefined> {
    if (change.quota) await this.#teller.flush()
    const changed = await this.#rows.write('changeUser', change)
    await this.#heed(`u:${change.userId}`)
    return changed?.user
  }

  async changeToken(change: TokenChange): Promise<KeyedToken | undefined> {
    if (change.fields.remainQuota !== undefined) await this.#teller.flush()
    const changed = await this.#rows.write('changeToken', change)
    await this.#heed(`t:${change.tokenId}`)
    return changed ?? undefined
  }

  /**
   * Something of an account was changed, wherever: it is read again at its next use. An epoch that is over
   * takes its lease.
   */
  changed(name: AccountName, epoch: number): void {
    const balance = this.#teller.leases.get(name)
    if (balance?.advanceEpoch(epoch) && balance.held > 0) this.#cover(name)
    this.forget(name)
  }

  /** Everything may have been changed. */
  onAllChanged(): void {
    this.#changes += 1
    this.#accounts.clear()
    void this.#teller.resync()
  }

  /** Reads an account again at its next use; a user's, all of the user's tokens. */
  forget(name: string): void {
    this.#changes += 1
    this.#drop(name)
  }

  #drop(name: string): void {
    const id = Number(name.slice(2))
    if (name.startsWith('t:')) this.#accounts.delete(id)
    else for (const [tokenId, { user }] of this.#accounts) if (user.id === id) this.#accounts.delete(tokenId)
  }

  async #find(keyHash: string): Promise<FoundAccount | undefined> {
    const lent = await this.#lend(firstLoan({ keyHash }))
    return lent && { token: lent.loan.token, user: lent.loan.user, account: lent.account }
  }

  // What changed while it was asked for is asked for again at its next use.
  async #lend(
    request: LoanRequest,
  ): Promise<{ readonly loan: Loan; readonly account: LeasedAccount } | undefined> {
    const changes = this.#changes
    const loan = await this.#teller.acquire(request)
    if (!loan) return undefined
    const tokenId = loan.token.id
    if (changes !== this.#changes) return { loan, account: this.#open(loan, undefined) }
    const account = this.#open(loan, this.#accounts.get(tokenId))
    this.#accounts.set(tokenId, account)
    return { loan, account }
  }

  #open({ token, tokenState: ofToken, userState: ofUser }: Loan, known: LeasedAccount | undefined): LeasedAccount {
    const { leases: book } = this.#teller
    const [tokenBalance, userBalance] = [book.getOrCreate(ofToken), book.getOrCreate(ofUser)]
    const unlimited = token.unlimitedQuota
    const isPoor =
      ofUser.free < 8 * userBalance.typicalHold || (!unlimited && ofToken.free < 8 * tokenBalance.typicalHold)
    if (known?.token !== tokenBalance || known.user !== userBalance) {
      return { token: tokenBalance, user: userBalance, unlimited, isPoor, isRenewing: false }
    }
    known.unlimited = unlimited
    known.isPoor = isPoor
    return known
  }

  // What is over for this node, the bank says at once; what was charged before it stays charged.
  async #heed(name: AccountName): Promise<void> {
    this.forget(name)
    if (this.#teller.leases.get(name)) await this.#teller.resync()
  }

  async #recallFor(
    { tokenState: ofToken, userState: ofUser }: Loan,
    { token, user, unlimited }: Account,
    amount: number,
  ): Promise<void> {
    const short: AccountName[] = []
    if (!unlimited && ofToken.free + token.free < amount) short.push(ofToken.account)
    if (ofUser.free + user.free < amount) short.push(ofUser.account)
    await Promise.all(short.map((account) => this.#recall(account).catch(() => {})))
    await delay(RECALL_MS)
  }

  // In a turn of its own, so that the call that noticed it does not wait.
  #renewSoon(account: LeasedAccount): void {
    account.isRenewing = true
    if (this.#low.size === 0) setImmediate(() => this.#renewAll())
    this.#low.add(account)
  }

  #renewAll(): void {
    for (const account of this.#low) {
      void this.#lend(loanFor(account, 0))
        .catch(() => {})
        .finally(() => {
          account.isRenewing = false
        })
    }
    this.#low.clear()
  }

  // The bank no longer knows of what is open here: it is lent anew, as far as there is anything.
  #cover(name: AccountName): void {
    for (const account of this.#accounts.values()) {
      if (account.token.account !== name && account.user.account !== name) continue
      if (!account.isRenewing) this.#renewSoon(account)
      return
    }
  }
}

function firstLoan(token: LoanRequest['token']): LoanRequest {
  return { token, need: { token: 0, user: 0 }, max: { token: FIRST_MOST, user: FIRST_MOST } }
}

/** What lets an account afford so much, and more of it for the calls to come. */
function loanFor({ token, user, unlimited }: Account, amount: number): LoanRequest {
  const need = (free: number): number => Math.max(0, Math.ceil(amount - free))
  const most = (balance: LeasedBalance): number =>
    Math.max(0, Math.ceil(CALLS_LENT * Math.max(balance.typicalHold, amount) - balance.free))
  return {
    token: token.id,
    need: { token: unlimited ? 0 : need(token.free), user: need(user.free) },
    max: { token: unlimited ? 0 : most(token as LeasedBalance), user: most(user as LeasedBalance) },
  }
}

function isLow({ token, user, unlimited }: LeasedAccount): boolean {
  return user.free < CALLS_LEFT * user.typicalHold || (!unlimited && token.free < CALLS_LEFT * token.typicalHold)
}

/** What a call could still have: what is free here and in the bank. */
function within({ tokenState: ofToken, userState: ofUser }: Loan, { token, user, unlimited }: Account): number {
  const ofUsers = ofUser.free + user.free
  return unlimited ? ofUsers : Math.min(ofUsers, ofToken.free + token.free)
}

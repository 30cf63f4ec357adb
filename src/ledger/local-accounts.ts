import type { ManagedUser } from '../domain/profile.ts'
import type { TokenChange } from '../store/operations/change-token.ts'
import type { KeyedToken } from '../store/operations/keyed-tokens.ts'
import type { UserChange } from '../store/operations/change-user.ts'
import type { Store } from '../store/store.ts'
import type { AccountSource, FoundAccount } from './account-source.ts'
import { type Account, Balance } from './balance.ts'

/**
 * Balances kept at most; idle ones beyond it are forgotten, oldest first, and read again when they are
 * needed.
 */
const KEPT = 50_000

/**
 * The accounts of a node that has the database to itself. A first use reads through the writer's queue, so
 * that no write queued before it is missed; from then on the balances here are ahead of the store, never
 * behind it.
 */
export class LocalAccounts implements AccountSource {
  readonly #store: Store
  readonly #accounts = new Map<number, Account>()
  readonly #users = new Map<number, Balance>()
  readonly #loading = new Map<number, Promise<Account | undefined>>()

  constructor(store: Store) {
    this.#store = store
  }

  get(tokenId: number): Account | undefined {
    return this.#accounts.get(tokenId)
  }

  load(tokenId: number): Promise<Account | undefined> {
    const known = this.#accounts.get(tokenId)
    if (known) return Promise.resolve(known)
    let loading = this.#loading.get(tokenId)
    if (!loading) {
      loading = this.#read(tokenId).finally(() => this.#loading.delete(tokenId))
      this.#loading.set(tokenId, loading)
    }
    return loading
  }

  async findByKeyHash(keyHash: string): Promise<FoundAccount | undefined> {
    const found = await this.#store.read('tokenByKeyHash', keyHash)
    const account = found && (await this.load(found.token.id))
    return found && account ? { ...found, account } : undefined
  }

  // There is nobody to borrow from: admission says what remains.
  ensureAffordable(account: Account): Promise<Account> {
    return Promise.resolve(account)
  }

  /**
   * Changes a user; undefined if there is no such user. A quota that changes counts when it is durable, not
   * before: what the store refuses in the end must not have paid for a call. The balance moves by as much as
   * the row did, so that what was charged meanwhile stays charged. Writes resolve in the order in which they
   * were queued: a balance which was read before this one is here by then, and one that is not here yet was
   * read after it.
   */
  async changeUser(change: UserChange): Promise<ManagedUser | undefined> {
    const changed = await this.#store.write('changeUser', change)
    const balance = this.#users.get(change.userId)
    if (changed && balance) balance.remain += changed.quotaMoved
    return changed?.user
  }

  /**
   * Changes a token, and what of it calls are admitted by; undefined if that user has no such token. The
   * balance moves by the difference that the store tells: what was settled since the write was queued, and
   * counts here already, stays off the new number, and open holds settle against it. As with a top-up, all of
   * it once that is durable.
   */
  async changeToken(change: TokenChange): Promise<KeyedToken | undefined> {
    const changed = await this.#store.write('changeToken', change)
    if (!changed) return undefined
    const account = this.#accounts.get(change.tokenId)
    if (account) {
      // In this order: the numbers of unlimited tokens are so large that their difference need not be exact.
      account.token.remain = account.token.remain - changed.remainBefore + changed.token.remainQuota
      account.unlimited = changed.token.unlimitedQuota
    }
    return changed
  }

  async #read(tokenId: number): Promise<Account | undefined> {
    const row = await this.#store.write('loadAccount', { tokenId })
    if (!row) return undefined
    // The user may have been read for another token meanwhile, and spent from: what is here is newer than the
    // row.
    let user = this.#users.get(row.user.id)
    if (!user) {
      user = new Balance(row.user.id, row.user.quota)
      this.#users.set(user.id, user)
    }
    const account: Account = {
      token: new Balance(tokenId, row.token.remainQuota),
      user,
      unlimited: row.token.unlimitedQuota,
    }
    this.#accounts.set(tokenId, account)
    if (this.#accounts.size > KEPT) this.#forget()
    return account
  }

  #forget(): void {
    const users = new Set<number>()
    let excess = this.#accounts.size - KEPT
    for (const [tokenId, account] of this.#accounts) {
      if (excess > 0 && account.token.isIdle) {
        this.#accounts.delete(tokenId)
        excess -= 1
      } else users.add(account.user.id)
    }
    for (const [userId, user] of this.#users) if (user.isIdle && !users.has(userId)) this.#users.delete(userId)
  }
}

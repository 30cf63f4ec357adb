import { LRUCache } from 'lru-cache'
import { lookupKey } from '../domain/api-key.ts'
import { type AddressSet, allowedAddresses } from '../domain/ip-allow-list.ts'
import { TOKEN_STATUS, type Token, type TokenStatus } from '../domain/token.ts'
import { statusAt } from '../domain/token-status.ts'
import { USER_STATUS, type User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import type { Account } from '../ledger/balance.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Store } from '../store/store.ts'
import type { Caller } from './caller.ts'

/** Keys kept at most between calls, known and unknown ones. */
const KEPT_KEYS = 50_000
/** How long an unknown key is remembered as such. */
const UNKNOWN_MS = 5_000

interface KnownKey {
  readonly token: Token
  readonly user: User
  readonly addresses: AddressSet
}

/** What a key is used for: to call a model, or to read what is left of it, for which time and quota may have run out. */
export type KeyUse = 'call' | 'read'

/** Checks API keys. A key that was used before is answered from memory, in the same turn. */
export class ApiKeys {
  readonly #store: Store
  readonly #ledger: Ledger
  readonly #hash: (key: string) => string
  /** Moves whenever something is forgotten: what was asked for before is not remembered after. */
  #forgotten = 0
  // Made when it is needed: room for all that it may keep is taken at once.
  #kept: LRUCache<string, KnownKey | 'unknown'> | undefined

  /** `hash` turns a key into what the store looks it up by. */
  constructor(store: Store, ledger: Ledger, hash: (key: string) => string) {
    this.#store = store
    this.#ledger = ledger
    this.#hash = hash
  }

  get #known(): LRUCache<string, KnownKey | 'unknown'> {
    return (this.#kept ??= new LRUCache({ max: KEPT_KEYS }))
  }

  /** Forgets a token's key, those of several, or all keys: what was changed is read again at the next call. */
  forget(tokens?: number | ReadonlySet<number>): void {
    this.#forgotten += 1
    if (tokens === undefined) this.#kept?.clear()
    else if (typeof tokens === 'number') this.#forgetWhere(({ token }) => token.id === tokens)
    else this.#forgetWhere(({ token }) => tokens.has(token.id))
  }

  /** Forgets all keys of a user. */
  forgetUser(userId: number): void {
    this.#forgotten += 1
    this.#forgetWhere(({ user }) => user.id === userId)
  }

  /** Forgets a key (without `sk-`) that may be remembered as unknown. */
  forgetKey(key: string): void {
    this.#forgotten += 1
    this.#known.delete(key)
  }

  #forgetWhere(isMeant: (known: KnownKey) => boolean): void {
    for (const [key, known] of this.#known.entries()) {
      if (known !== 'unknown' && isMeant(known)) this.#known.delete(key)
    }
  }

  /**
   * The caller behind the key that was sent. A dead key (unknown, deleted, disabled, expired, exhausted) is a 401 that
   * says which, but that an expired or exhausted one may read; a disabled user or a foreign address is a 403.
   * `docs/api.md: Authentication`.
   */
  authenticate(sent: string | undefined, address: string, use: KeyUse = 'call'): Caller | Promise<Caller> {
    const key = sent === undefined || sent === '' ? missing() : lookupKey(sent)
    if (key === undefined) throw unknownKey()
    const known = this.#known.get(key)
    if (known === undefined) return this.#load(key, address, use)
    if (known === 'unknown') throw unknownKey()
    const account = this.#ledger.accounts.get(known.token.id)
    return account ? this.#check(known, account, address, use) : this.#load(key, address, use)
  }

  async #load(key: string, address: string, use: KeyUse): Promise<Caller> {
    const forgotten = this.#forgotten
    const found = await this.#store.read('tokenByKeyHash', this.#hash(key))
    const account = found && (await this.#ledger.accounts.load(found.token.id))
    if (!found || !account) {
      if (forgotten === this.#forgotten) this.#known.set(key, 'unknown', { ttl: UNKNOWN_MS })
      throw unknownKey()
    }
    const known = { ...found, addresses: allowedAddresses(found.token.allowIps) }
    // What changed while it was read is read again.
    if (forgotten === this.#forgotten) this.#known.set(key, known)
    return this.#check(known, account, address, use)
  }

  #check({ token, user, addresses }: KnownKey, account: Account, address: string, use: KeyUse): Caller {
    if (token.deletedTime !== null) throw new GatewayError('token_deleted', 'this API key was deleted')
    const status = statusAt(token, account.token.remain, Date.now())
    if (status !== TOKEN_STATUS.enabled) {
      if (token.status === TOKEN_STATUS.enabled) this.#moveTo(token.id, status)
      if (use === 'call' || status === TOKEN_STATUS.disabled) throw refusal(status)
    }
    if (user.status !== USER_STATUS.enabled)
      throw new GatewayError('user_disabled', 'the user of this API key is disabled')
    if (!addresses(address))
      throw new GatewayError('ip_not_allowed', 'this API key may not be used from this address')
    return { token, user }
  }

  // A key whose time or quota ran out is marked so when somebody uses it; the answer does not wait for it.
  #moveTo(tokenId: number, status: TokenStatus): void {
    this.#store
      .write('setTokenStatus', { tokenId, status, onlyFrom: TOKEN_STATUS.enabled })
      .then(() => this.forget(tokenId))
      .catch(() => {})
  }
}

function refusal(status: Exclude<TokenStatus, 1>): GatewayError {
  switch (status) {
    case TOKEN_STATUS.disabled:
      return new GatewayError('token_disabled', 'this API key is disabled')
    case TOKEN_STATUS.expired:
      return new GatewayError('token_expired', 'this API key has expired')
    case TOKEN_STATUS.exhausted:
      return new GatewayError('token_exhausted', 'the quota of this API key is exhausted')
  }
}

function missing(): never {
  throw new GatewayError(
    'missing_api_key',
    'no API key was given; it is expected in the header "Authorization: Bearer sk-…"',
  )
}

function unknownKey(): GatewayError {
  return new GatewayError('invalid_api_key', 'this API key is unknown')
}

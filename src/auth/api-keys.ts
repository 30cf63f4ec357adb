import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { lookupKey } from '../domain/api-key.ts'
import type { Change } from '../domain/change.ts'
import { type AddressSet, allowedAddresses } from '../domain/ip-allow-list.ts'
import { TOKEN_STATUS, type Token, type TokenStatus } from '../domain/token.ts'
import { type KeyUse, refuseUnusableKey } from '../domain/refuse-unusable-key.ts'
import { statusAt } from '../domain/token-status.ts'
import type { User } from '../domain/user.ts'
import { GatewayError } from '../errors.ts'
import type { Account } from '../ledger/balance.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Store } from '../store/store.ts'
import type { Caller } from './caller.ts'

/** Keys kept at most between calls, known and unknown ones. */
const KEPT_KEYS = 50_000
/** How long an unknown key is remembered as such. */
const UNKNOWN_MS = 5_000

/**
 * Where other nodes may change a key: how long it is gone by unread, and from when on it is read again beside
 * the call.
 */
const OLDEST_MS = 60_000
const OLD_MS = 30_000
/** How soon that is tried again where the database is out of reach. */
const AGAIN_MS = 1_000

interface KnownKey {
  readonly readMs: number
  readonly token: Token
  readonly user: User
  readonly addresses: AddressSet
  /** As it was when the key was read: where there is another now, something may have been changed. */
  readonly account: Account
}

/** Checks API keys. A key that was used before is answered from memory, in the same turn. */
export class ApiKeys {
  readonly #store: Store
  readonly #ledger: Ledger
  readonly #hash: (key: string) => string
  readonly #tell: ((change: Change) => void) | undefined
  /** Keys that are read again beside the calls that are made with them. */
  readonly #refreshing = new Set<string>()
  /** Moves whenever something is forgotten: what was asked for before is not remembered after. */
  #forgotten = 0
  // Made when it is needed: room for all that it may keep is taken at once.
  #kept: LRUCache<string, KnownKey | 'unknown'> | undefined

  /**
   * `hash` turns a key into what the store looks it up by. `tell` tells other nodes, where there may be any.
   */
  constructor(store: Store, ledger: Ledger, hash: (key: string) => string, tell?: (change: Change) => void) {
    this.#store = store
    this.#ledger = ledger
    this.#hash = hash
    this.#tell = tell
  }

  get #known(): LRUCache<string, KnownKey | 'unknown'> {
    return (this.#kept ??= new LRUCache({ max: KEPT_KEYS }))
  }

  /**
   * Forgets a token's key, or those of several: what was changed is read again at the next call, on every
   * node.
   */
  forget(tokens: number | ReadonlySet<number>): void {
    this.#forgetAndTell({ of: 'tokens', ids: typeof tokens === 'number' ? [tokens] : [...tokens] })
  }

  /** Forgets all keys of a user. */
  forgetUser(userId: number): void {
    this.#forgetAndTell({ of: 'user', id: userId })
  }

  /** Forgets a key (without `sk-`) that may be remembered as unknown. */
  forgetKey(key: string): void {
    this.#forgotten += 1
    this.#kept?.delete(key)
    this.#tell?.({ of: 'keys' })
  }

  /** Forgets all keys, on this node: what they may do has changed here. */
  forgetAll(): void {
    this.#forgotten += 1
    this.#kept?.clear()
  }

  /** Forgets what another node has changed. */
  applyChange(change: Change): void {
    switch (change.of) {
      case 'tokens': {
        const ids = new Set(change.ids)
        return this.#forgetWhere((known) => known !== 'unknown' && ids.has(known.token.id))
      }
      case 'user':
        return this.#forgetWhere((known) => known !== 'unknown' && known.user.id === change.id)
      case 'keys':
        return this.#forgetWhere((known) => known === 'unknown')
      case 'settings':
        return undefined
      case 'anything':
        return this.forgetAll()
    }
  }

  #forgetAndTell(change: Change): void {
    this.applyChange(change)
    this.#tell?.(change)
  }

  #forgetWhere(isMeant: (known: KnownKey | 'unknown') => boolean): void {
    this.#forgotten += 1
    for (const [key, known] of this.#kept?.entries() ?? []) if (isMeant(known)) this.#kept?.delete(key)
  }

  /**
   * The caller behind the key that was sent. A dead key (unknown, deleted, disabled, expired, exhausted) is a
   * 401 that says which, but that an expired or exhausted one may read; a disabled user or a foreign address
   * is a 403. `docs/api.md: Authentication`.
   */
  authenticate(sent: string, address: string, use: KeyUse = 'call'): Caller | Promise<Caller> {
    const key = lookupKey(sent)
    if (key === undefined) throw unknownKey()
    const known = this.#known.get(key)
    if (known === undefined) return this.#load(key, address, use)
    if (known === 'unknown') throw unknownKey()
    if (this.#tell && this.#isOutOfDate(key, known)) return this.#load(key, address, use)
    const account = this.#ledger.accounts.get(known.token.id)
    return account === known.account ? this.#check(known, address, use) : this.#load(key, address, use)
  }

  // What other nodes change is heard of at once, but where a word is lost. A key that is in use is read again
  // in good time, and no call waits for that; where it could not be, the next one does.
  #isOutOfDate(key: string, known: KnownKey): boolean {
    const ageMs = performance.now() - known.readMs
    if (ageMs > OLD_MS && !this.#refreshing.has(key)) {
      this.#refreshing.add(key)
      this.#read(key)
        .catch(() => delay(AGAIN_MS, undefined, { ref: false }))
        .finally(() => this.#refreshing.delete(key))
    }
    return ageMs > OLDEST_MS
  }

  async #load(key: string, address: string, use: KeyUse): Promise<Caller> {
    return this.#check((await this.#read(key)) ?? refuseUnknown(), address, use)
  }

  async #read(key: string): Promise<KnownKey | undefined> {
    const forgotten = this.#forgotten
    const readMs = performance.now()
    const found = await this.#ledger.accounts.findByKeyHash(this.#hash(key))
    // What changed while it was read is read again.
    const isLatest = forgotten === this.#forgotten
    if (!found) {
      if (isLatest) this.#known.set(key, 'unknown', { ttl: UNKNOWN_MS })
      return undefined
    }
    const { token, user, account } = found
    const known = { token, user, account, readMs, addresses: allowedAddresses(token.allowIps) }
    if (isLatest) this.#known.set(key, known)
    return known
  }

  #check({ token, user, account, addresses }: KnownKey, address: string, use: KeyUse): Caller {
    const status = statusAt(token, account.token.accountRemain, Date.now())
    if (status !== TOKEN_STATUS.enabled && token.status === TOKEN_STATUS.enabled) {
      this.#moveTo(token.id, status)
    }
    refuseUnusableKey(token, user, status, use)
    if (!addresses(address))
      throw new GatewayError('ip_not_allowed', 'this API key may not be used from this address')
    return { token, user }
  }

  // A key whose time or quota ran out is marked so when somebody uses it; the answer does not wait for it.
  #moveTo(tokenId: number, status: TokenStatus): void {
    this.#store
      .write('setTokenStatus', { tokenId, status, onlyFrom: TOKEN_STATUS.enabled })
      .then(() => this.applyChange({ of: 'tokens', ids: [tokenId] }))
      .catch(() => {})
  }
}

function refuseUnknown(): never {
  throw unknownKey()
}

function unknownKey(): GatewayError {
  return new GatewayError('invalid_api_key', 'this API key is unknown')
}

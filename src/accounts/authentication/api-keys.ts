import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import {
  importedKeyHash,
  type KeyPurpose,
  lookupPartOfKey,
  refuseOtherAddress,
  refuseUnusableKey,
  tokenStatusAt,
  wholeTextOfKey,
} from '../../domain/api-key.ts'
import type { DataChange } from '../../domain/data-change.ts'
import { flatCopy } from '../../domain/flat-copy.ts'
import { type AddressSet, allowedAddresses } from '../../domain/ip-allow-list.ts'
import { TOKEN_STATUS, type Token, type TokenStatus } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { Account } from '../ledger/balance.ts'
import type { TokenWithAccount } from '../ledger/account-source.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Store } from '../../store/store.ts'
import type { Caller } from './caller.ts'

/** Maximum number of cached keys. */
const MAX_KEYS = 50_000
/** Maximum number of keys that are cached as unknown, apart from the others, so that they displace none of them. */
const MAX_UNKNOWN_KEYS = 10_000
/** Milliseconds for which a key stays cached as unknown. */
const UNKNOWN_MS = 5_000

/**
 * Used in a cluster: a cached key is accepted up to `MAX_AGE_MS`, and read again from `REFRESH_AGE_MS` on.
 */
const MAX_AGE_MS = 60_000
const REFRESH_AGE_MS = 30_000
/** Delay before a failed read of a cached key is repeated. */
const RETRY_MS = 1_000

interface CachedKey {
  readonly readMs: number
  readonly token: Token
  readonly user: User
  readonly addresses: AddressSet
  /**
   * The account object at the time the key was read. If the ledger now has a different object, the token may
   * have changed, so the key is read again.
   */
  readonly account: Account
}

/** Authenticates API keys. A cached key is checked synchronously; any other key is read from the store. */
export class ApiKeys {
  readonly #store: Store
  readonly #ledger: Ledger
  readonly #hashes: (key: string) => readonly string[]
  readonly #announce: ((change: DataChange) => void) | undefined
  /** Cached keys that are being read again from the store. */
  readonly #refreshing = new Set<string>()
  /** Callers whose keys were refused, by the error that was thrown. */
  readonly #refused = new WeakMap<GatewayError, Caller>()
  /** Number of evictions so far. A key whose read began before the latest eviction is not cached. */
  #evictions = 0
  /** Whether there are keys that other gateways made, and when that was read; undefined if it may have changed. */
  #imported: { readonly any: boolean; readonly readMs: number } | undefined
  // Created at first use, because the cache allocates its full capacity at once.
  #cache: LRUCache<string, CachedKey> | undefined
  #unknownCache: LRUCache<string, true> | undefined

  /**
   * `hashes` computes the hashes by which the store looks up keys. `announce` notifies other nodes of a change,
   * if there can be other nodes.
   */
  constructor(
    store: Store,
    ledger: Ledger,
    hashes: (key: string) => readonly string[],
    announce?: (change: DataChange) => void,
  ) {
    this.#store = store
    this.#ledger = ledger
    this.#hashes = hashes
    this.#announce = announce
  }

  get #keys(): LRUCache<string, CachedKey> {
    return (this.#cache ??= new LRUCache({ max: MAX_KEYS }))
  }

  get #unknown(): LRUCache<string, true> {
    return (this.#unknownCache ??= new LRUCache({ max: MAX_UNKNOWN_KEYS, ttl: UNKNOWN_MS }))
  }

  /** Evicts the keys of these tokens on all nodes, after the tokens were changed. */
  forget(tokens: number | ReadonlySet<number>): void {
    this.#evictAndAnnounce({ of: 'tokens', ids: typeof tokens === 'number' ? [tokens] : [...tokens] })
  }

  /** Evicts all keys of a user on all nodes. */
  forgetUser(userId: number): void {
    this.#evictAndAnnounce({ of: 'user', id: userId })
  }

  /** Evicts a new key (without `sk-`), which may be cached as unknown; announces that to the other nodes. */
  forgetKey(key: string): void {
    this.#evictions += 1
    this.#unknownCache?.delete(key)
    this.#announce?.({ of: 'keys' })
  }

  /** Evicts the keys that are cached as unknown, on all nodes. */
  forgetUnknown(): void {
    this.#evictAndAnnounce({ of: 'keys' })
  }

  /** Evicts all keys on this node. */
  forgetAll(): void {
    this.#evictions += 1
    this.#imported = undefined
    this.#cache?.clear()
    this.#unknownCache?.clear()
  }

  /** Evicts the keys affected by a change on any node. */
  applyChange(change: DataChange): void {
    switch (change.of) {
      case 'tokens': {
        const ids = new Set(change.ids)
        return this.#evictWhere((cached) => ids.has(cached.token.id))
      }
      case 'user':
        return this.#evictWhere((cached) => cached.user.id === change.id)
      case 'keys':
        this.#evictions += 1
        this.#imported = undefined
        return this.#unknownCache?.clear()
      case 'settings':
        return undefined
      case 'anything':
        return this.forgetAll()
    }
  }

  #evictAndAnnounce(change: DataChange): void {
    this.applyChange(change)
    this.#announce?.(change)
  }

  #evictWhere(isConcerned: (cached: CachedKey) => boolean): void {
    this.#evictions += 1
    for (const [key, cached] of this.#cache?.entries() ?? [])
      if (isConcerned(cached)) this.#cache?.delete(key)
  }

  /**
   * Returns the caller that a key identifies. Throws 401 with the reason if the key cannot be used: unknown,
   * deleted, disabled, expired or exhausted. Expired and exhausted keys may still be used for reading. Throws
   * 403 for a disabled user or an address that is not allowed. `docs/api.md: Authentication`.
   */
  authenticate(sent: string, address: string, use: KeyPurpose = 'call'): Caller | Promise<Caller> {
    const key = lookupPartOfKey(sent)
    if (key === undefined || this.#unknownCache?.has(key))
      return this.#authenticateImported(sent, address, use)
    return this.#checkCached(key, this.#keys.get(key), address, use) ?? this.#load(key, sent, address, use)
  }

  /** Returns the caller of a cached key; undefined if the key must be read. */
  #checkCached(
    name: string,
    cached: CachedKey | undefined,
    address: string,
    use: KeyPurpose,
  ): Caller | undefined {
    if (!cached || (this.#announce && this.#isTooOld(name, cached))) return undefined
    const account = this.#ledger.accounts.get(cached.token.id)
    return account === cached.account ? this.#check(cached, address, use) : undefined
  }

  /** Does the same as `authenticate` for a key that another gateway made; `docs/moving.md: From LiteLLM`. */
  #authenticateImported(sent: string, address: string, use: KeyPurpose): Caller | Promise<Caller> {
    const whole = wholeTextOfKey(sent)
    if (whole === undefined || (this.#imported?.any === false && !isOld(this.#imported))) throw unknownKey()
    const name = nameOfWhole(whole)
    if (this.#unknownCache?.has(name)) throw unknownKey()
    return (
      this.#checkCached(name, this.#keys.get(name), address, use) ?? this.#loadImported(name, address, use)
    )
  }

  /**
   * Returns the caller of a refused request, whose limits the response states: the caller that `authenticate`
   * refused with this error; or, if the request was refused before its key was checked, the caller in the
   * cache. `docs/api.md: Limits`.
   */
  refusedCaller(error: unknown, sent: string | undefined): Caller | undefined {
    const refused = error instanceof GatewayError ? this.#refused.get(error) : undefined
    if (refused) return refused
    const [key, whole] = [lookupPartOfKey(sent ?? ''), wholeTextOfKey(sent ?? '')]
    for (const name of [key, whole && nameOfWhole(whole)]) {
      const cached = name === undefined ? undefined : this.#cache?.peek(name)
      if (cached !== undefined) return { token: cached.token, user: cached.user }
    }
    return undefined
  }

  // Announcements of changes may be lost, so keys in use are refreshed in the background. A call waits only
  // if that has failed.
  #isTooOld(key: string, cached: CachedKey): boolean {
    const ageMs = performance.now() - cached.readMs
    if (ageMs > REFRESH_AGE_MS && !this.#refreshing.has(key)) {
      this.#refreshing.add(key)
      this.#read(key)
        .catch(() => delay(RETRY_MS, undefined, { ref: false }))
        .finally(() => this.#refreshing.delete(key))
    }
    return ageMs > MAX_AGE_MS
  }

  async #load(key: string, sent: string, address: string, use: KeyPurpose): Promise<Caller> {
    const found = await this.#read(key)
    return found ? this.#check(found, address, use) : this.#authenticateImported(sent, address, use)
  }

  async #loadImported(name: string, address: string, use: KeyPurpose): Promise<Caller> {
    let imported = this.#imported
    if (!imported || isOld(imported)) {
      const evictions = this.#evictions
      const readMs = performance.now()
      imported = { any: await this.#store.read('hasImportedKeys'), readMs }
      // Keys may have been imported during the read.
      if (evictions === this.#evictions) this.#imported = imported
    }
    if (!imported.any) throw unknownKey()
    return this.#check((await this.#read(name)) ?? refuseUnknown(), address, use)
  }

  /** Reads a key by the name under which it is cached. */
  async #read(name: string): Promise<CachedKey | undefined> {
    const evictions = this.#evictions
    const readMs = performance.now()
    const found = await (isNameOfWhole(name) ? this.#findImported(name) : this.#find(this.#hashes(name)))
    // A key that changed during the read is not cached.
    const isLatest = evictions === this.#evictions
    // The name is a part of a header of up to 16 KB.
    const kept = flatCopy(name)
    if (!found) {
      if (isLatest) {
        this.#keys.delete(kept)
        this.#unknown.set(kept, true)
      }
      return undefined
    }
    const { token, user, account } = found
    const cached = { token, user, account, readMs, addresses: allowedAddresses(token.allow_ips) }
    if (isLatest) this.#keys.set(kept, cached)
    return cached
  }

  // While the secret is changed, a key has two hashes. Its row may move from one to the other between two reads, so
  // the first one is tried once more.
  async #find(hashes: readonly string[]): Promise<TokenWithAccount | undefined> {
    const [first = '', ...others] = hashes
    const { accounts } = this.#ledger
    let found = await accounts.findByKeyHash(first)
    if (others.length === 0) return found
    for (const hash of [...others, first]) found ??= await accounts.findByKeyHash(hash)
    return found
  }

  // A key of which only the digest is known is stored when it is used for the first time.
  async #findImported(sent: string): Promise<TokenWithAccount | undefined> {
    const key = sent.slice(WHOLE.length)
    const found = await this.#find(this.#hashes(key))
    if (found) return found
    const digest = createHash('sha256').update(sent).digest('hex')
    const form = lookupPartOfKey(key) === key ? 'plain' : 'whole'
    if (await this.#store.read('tokenByKeyHash', importedKeyHash(digest)))
      await this.#store.write('storeImportedKey', { digest, key, form })
    // Another call may have stored it since the first look.
    return this.#find(this.#hashes(key))
  }

  #check({ token, user, account, addresses }: CachedKey, address: string, use: KeyPurpose): Caller {
    const status = tokenStatusAt(token, account.token.accountRemain, Date.now())
    if (status !== TOKEN_STATUS.enabled && token.status === TOKEN_STATUS.enabled) {
      this.#storeStatus(token.id, status)
    }
    try {
      refuseUnusableKey(token, user, status, use)
      refuseOtherAddress(addresses, address)
    } catch (error) {
      if (error instanceof GatewayError) {
        error.caller = { userId: user.id, tokenId: token.id }
        this.#refused.set(error, { token, user })
      }
      throw error
    }
    return { token, user }
  }

  // Stores the status of an expired or exhausted key. The response does not wait for it.
  #storeStatus(tokenId: number, status: TokenStatus): void {
    this.#store
      .write('setTokenStatus', { tokenId, status, onlyFrom: TOKEN_STATUS.enabled })
      .then(() => this.applyChange({ of: 'tokens', ids: [tokenId] }))
      .catch(() => {})
  }
}

/** What the names begin with under which keys are cached that are looked up by their whole text: that of any such key. */
const WHOLE = 'sk-'

function nameOfWhole(key: string): string {
  return WHOLE + key
}

function isNameOfWhole(name: string): boolean {
  return name.startsWith(WHOLE)
}

function isOld({ readMs }: { readonly readMs: number }): boolean {
  return performance.now() - readMs > MAX_AGE_MS
}

function refuseUnknown(): never {
  throw unknownKey()
}

function unknownKey(): GatewayError {
  return new GatewayError('invalid_api_key', 'this API key is unknown')
}

import { createHash, hash } from 'node:crypto'
import { promptTokens, type Usage } from '@sluice/wire/usage'
import type { Options } from '../../domain/options.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { Plans } from '../../call/plan.ts'
import type { AttemptTarget, ParsedRequest, Plan } from '../../call/request-stages.ts'
import { type DigestStore, searchForOneDigest } from '../../call/digests/digest-store.ts'
import { RecentCalls } from './recent-calls.ts'
import type { CallSession } from '../../call/session.ts'

/** Services that are needed to keep sessions with their channel and key. */
export interface AffinityServices {
  /**
   * Where the bindings of sessions are kept: each is a number, found by the digest of its session and model.
   */
  readonly store: DigestStore
  readonly metrics: Pick<Metrics, 'add'>
  /** The monotonic clock; in milliseconds. */
  readonly nowMs: () => number
}

/** Minimum number of tokens that a prompt must have so that providers cache it. */
const MIN_CACHED_TOKENS = 1_024
/** Lifetimes of providers' prompt caches in milliseconds, the shortest first. */
export const CACHE_LIFETIMES_MS = [300_000, 1_800_000, 3_600_000, 43_200_000, 86_400_000] as const
export const LONGEST_LIFETIME_INDEX = CACHE_LIFETIMES_MS.length - 1
/**
 * Number of consecutive answers that read nothing from the provider's cache. After that, a session stays with
 * its key only if the key has not too many calls (`MAX_SHARES`).
 */
const MAX_MISSES = 2
/**
 * A session whose last `MAX_MISSES` answers read nothing from a cache leaves its key while that key gets more
 * than this multiple of an equal share of the channel's recent calls.
 */
const MAX_SHARES = 2

/** Keeps the calls of a session with the channel and the key that have its cache. `docs/caches.md: Sessions`. */
export class SessionAffinity {
  readonly #services: AffinityServices
  readonly #recent: RecentCalls

  constructor(services: AffinityServices) {
    this.#services = services
    this.#recent = new RecentCalls(services.nowMs)
  }

  /** Counts an attempt of a call without a session among the recent calls of its channel and key. */
  counted({ request, settings }: Plan, { channel, key }: AttemptTarget): void {
    if (channel.keys.length < 2 || request.charging === 'free' || !settings.options.affinity.enabled) return
    this.#recent.add(channel.name, key.value)
  }

  /**
   * Returns what directs a call to the channel and key of its session; undefined if affinity is turned off or
   * the call has no session.
   */
  of(userId: number, session: CallSession | undefined, plans: Plans): CallAffinity | undefined {
    if (!session || !plans[0].settings.options.affinity.enabled) return undefined
    return new CallAffinity(this.#services, this.#recent, userId, session, plans)
  }
}

/** The channel and key where a session's prompt is cached. */
interface Binding {
  /** Number of the channel and key, from `numberOfChannelKey`. */
  readonly place: number
  /** Index in `CACHE_LIFETIMES_MS` of the longest cache lifetime that was written. */
  readonly lifetime: number
  /** Number of consecutive answers that read nothing from a cache, up to `MAX_MISSES`. */
  readonly misses: number
}

/** Sends one call to the channel and key where its session is cached. */
export class CallAffinity {
  readonly #services: AffinityServices
  readonly #recent: RecentCalls
  readonly #userId: number
  readonly #session: CallSession
  readonly #options: Options
  /** Only requests with a conversation have a `prompt_cache_key`. */
  readonly #isConversation: boolean
  /** Whether a binding is useful: there is more than one channel or key to choose from. */
  readonly #binds: boolean
  /** The session's bindings, by the name of the model that serves the call; undefined if there is none. */
  readonly #bindings = new Map<string, Binding | undefined>()
  /** Digests under which the session's bindings are stored, by the name of the model that serves the call. */
  readonly #digests = new Map<string, Buffer>()
  #isCounted = false

  constructor(
    services: AffinityServices,
    recent: RecentCalls,
    userId: number,
    session: CallSession,
    plans: Plans,
  ) {
    this.#services = services
    this.#recent = recent
    this.#userId = userId
    this.#session = session
    this.#options = plans[0].settings.options
    this.#isConversation = plans[0].request.json?.dialect.conversation !== undefined
    this.#binds = plans.some(leavesChoice)
  }

  /**
   * Returns the plans with the channel of the session's binding before the others of its priority. Returns a
   * promise only if the binding must be looked up in another process.
   */
  arranged(plans: Plans): Plans | Promise<Plans> {
    if (!this.#binds) return plans
    const found = plans.map((plan) => this.#arrange(plan))
    return found.some((one) => one instanceof Promise)
      ? (Promise.all(found.map((one) => Promise.resolve(one))) as Promise<unknown> as Promise<Plans>)
      : (found as unknown as Plans)
  }

  /**
   * Puts the key of the session's binding before the others. `keys`: the keys of the channel that can be
   * used.
   */
  ordered(plan: Plan, channel: Channel, keys: readonly UpstreamKey[]): readonly UpstreamKey[] {
    const binding = this.#bindings.get(plan.request.model)
    if (!binding || keys.length < 2) return keys
    const at = keys.findIndex((key) => numberOfChannelKey(channel, key.value) === binding.place)
    const bound = keys[at]
    if (!bound || this.#isAboveShare(binding, channel, bound, keys.length)) return keys
    return at === 0 ? keys : [bound, ...keys.slice(0, at), ...keys.slice(at + 1)]
  }

  /**
   * Counts an attempt with this key among the recent calls of the channel, and the first attempt in the
   * metrics.
   */
  attempted({ request }: Plan, { channel, key }: AttemptTarget): void {
    if (!this.#binds) return
    if (channel.keys.length > 1) this.#recent.add(channel.name, key.value)
    if (this.#isCounted) return
    this.#isCounted = true
    const binding = this.#bindings.get(request.model)
    const result = !binding
      ? 'new'
      : binding.place === numberOfChannelKey(channel, key.value)
        ? 'kept'
        : 'moved'
    this.#services.metrics.add('sessionCalls', 1, result)
  }

  /**
   * Binds the session to the channel and key that answered, even if the client left before the end.
   * `isReported`: whether the provider reported the usage.
   */
  answered({ request }: Plan, { channel, key }: AttemptTarget, usage: Usage, isReported: boolean): void {
    if (!this.#binds) return
    const old = this.#bindings.get(request.model)
    const written = longestWrittenLifetime(usage, cachesForADay(request))
    if (!old && written < 0 && !mayBeCached(usage)) return
    const misses = (old?.misses ?? 0) + (isReported ? 1 : 0)
    const binding: Binding = {
      place: numberOfChannelKey(channel, key.value),
      lifetime: Math.max(old?.lifetime ?? 0, written),
      misses: usage.cacheRead > 0 ? 0 : Math.min(MAX_MISSES, misses),
    }
    this.#bindings.set(request.model, binding)
    const ms = CACHE_LIFETIMES_MS[binding.lifetime] as number
    const { most } = this.#options.affinity
    this.#services.store.remember(this.#userId, this.#digestOf(request.model), numberOf(binding), {
      ms,
      most,
    })
  }

  /** The value of `prompt_cache_key` for the session; undefined if none may be added. */
  get cacheKey(): string | undefined {
    const { tag, isNamed, hasCacheKey } = this.#session
    const isAdded = this.#options.affinity.cache_key && this.#isConversation && isNamed && !hasCacheKey
    return isAdded ? tag.slice(0, 32) : undefined
  }

  #arrange(plan: Plan): Plan | Promise<Plan> {
    const found = this.#services.store.find(
      searchForOneDigest(this.#userId, this.#digestOf(plan.request.model)),
      () => true,
    )
    return found instanceof Promise
      ? found.then((later) => this.#arrangeBy(plan, later?.value))
      : this.#arrangeBy(plan, found?.value)
  }

  #arrangeBy(plan: Plan, number: number | undefined): Plan {
    if (number === undefined) return plan
    const binding = bindingOf(number)
    this.#bindings.set(plan.request.model, binding)
    const { channels } = plan
    const at = channels.findIndex(({ channel }) => this.#isAt(binding, channel))
    const bound = channels[at]
    if (!bound) return plan
    const first = channels.findIndex(({ channel }) => channel.priority === bound.channel.priority)
    if (first === at) return plan
    const others = channels.toSpliced(at, 1)
    return { ...plan, channels: others.toSpliced(first, 0, bound) }
  }

  #isAt(binding: Binding, channel: Channel): boolean {
    const keys = channel.keys.length === 0 ? [''] : channel.keys
    return keys.some((value) => numberOfChannelKey(channel, value) === binding.place)
  }

  #isAboveShare(binding: Binding, channel: Channel, key: UpstreamKey, usable: number): boolean {
    if (binding.misses < MAX_MISSES) return false
    const { ofKey, ofChannel } = this.#recent.counts(channel.name, key.value)
    return ofKey >= 1 && ofKey + 1 > (MAX_SHARES * (ofChannel + 1)) / usable
  }

  // Nobody can guess this digest, because it contains the session's tag, an HMAC.
  #digestOf(model: string): Buffer {
    let digest = this.#digests.get(model)
    if (!digest) {
      digest = hash('sha256', `binding ${this.#session.tag} ${model}`, 'buffer')
      this.#digests.set(model, digest)
    }
    return digest
  }
}

/** Whether a request asks the provider to keep its prompt in the cache for a day. */
export function cachesForADay({ json }: ParsedRequest): boolean {
  if (!json?.dialect.conversation) return false
  const { scan } = json
  return scan.has('prompt_cache_retention') && scan.value('prompt_cache_retention') === '24h'
}

function leavesChoice({ channels }: Plan): boolean {
  return channels.length > 1 || channels.some(({ channel }) => channel.keys.length > 1)
}

/**
 * Index in `CACHE_LIFETIMES_MS` of the longest lifetime with which an answer wrote to a cache; -1 if it wrote
 * nothing.
 */
export function longestWrittenLifetime(usage: Usage, isForADay: boolean): number {
  const written = [usage.cacheWrite5m, usage.cacheWrite30m, usage.cacheWrite1h, usage.cacheWrite12h]
  const longest = written.findLastIndex((tokens) => tokens > 0)
  // Providers that keep prompts for a day do not report what they write.
  return isForADay && (longest >= 0 || mayBeCached(usage)) ? LONGEST_LIFETIME_INDEX : longest
}

function mayBeCached(usage: Usage): boolean {
  return usage.cacheRead > 0 || promptTokens(usage) >= MIN_CACHED_TOKENS
}

const PLACE_BITS = 27
const PLACES = new WeakMap<Channel, Map<string, number>>()

/**
 * Number that stands for a channel and one of its keys. If two of them get the same number, only a cached
 * prompt may be missed.
 */
export function numberOfChannelKey(channel: Channel, key: string): number {
  let places = PLACES.get(channel)
  if (!places) PLACES.set(channel, (places = new Map()))
  let place = places.get(key)
  if (place === undefined) {
    const digest = createHash('sha256').update(`${channel.name}\0${key}`).digest()
    places.set(key, (place = digest.readUInt32BE() >>> (32 - PLACE_BITS)))
  }
  return place
}

// A binding is one number of 32 bits: 27 bits for the place, three for the lifetime, and two for the misses.
function numberOf({ place, lifetime, misses }: Binding): number {
  return place * 32 + lifetime * 4 + misses
}

function bindingOf(number: number): Binding {
  return {
    place: Math.floor(number / 32),
    lifetime: Math.min(LONGEST_LIFETIME_INDEX, (number >>> 2) & 7),
    misses: Math.min(MAX_MISSES, number & 3),
  }
}

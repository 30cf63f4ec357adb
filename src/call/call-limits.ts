import type { Caller } from '../accounts/authentication/caller.ts'
import { hasRateLimit } from '../domain/usage-limits.ts'
import type { Channel } from '../domain/records/channel.ts'
import { NO_LIMIT, type RateLimit } from '../domain/rate-limit.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import type { GatewayError, RefusedLimit } from '../errors.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { Semaphore, ParallelLimit } from '../limits/semaphore.ts'
import {
  afterRateLimitVerdict,
  type LimitFigures,
  type LimitName,
  LIMIT_NAMES,
  rateLimitError,
  type RateLimiter,
  requireWithinRateLimit,
  type RateLimitVerdict,
  type SubjectLimit,
} from '../limits/rate-limiter.ts'

/** Retry-After, in milliseconds, for a call refused because too many others are in progress. */
const PARALLEL_WAIT_MS = 1_000
/** Retry-After, in milliseconds, for a line of a batch that leaves the rest of a limit to calls of clients. */
const BEHIND_WAIT_MS = 1_000

const NOTHING_TO_LEAVE = (): void => {}

/** A limit and its owner, who is named in the error message. */
export interface OwnedLimit extends SubjectLimit {
  readonly owner: string
  /** The API key that a refused call shows as its subject, if `subject` is not its id. */
  readonly tokenId?: number
}

/**
 * Rate limits of calls: per API key, per user, per model over all clients, and per channel. `docs/api.md:
 * Limits`.
 */
export class CallLimits {
  readonly #limits: RateLimiter
  readonly #semaphore: Semaphore
  /**
   * Callers whose key or user has its own token limit, by token id. They are needed when a call is settled,
   * at which time only the token id is known.
   */
  readonly #callers = new Map<number, Caller>()
  readonly #known = new KnownLimits()

  constructor(limits: RateLimiter, semaphore: Semaphore) {
    this.#limits = limits
    this.#semaphore = semaphore
  }

  /**
   * Counts a call as running. Throws `rate_limited` if its key or its user already has the maximum of running
   * calls. The returned function ends the count.
   */
  begin(caller: Caller): (() => void) | Promise<() => void> {
    const { token, user } = caller
    if (token.rateLimit.parallel === 0 && user.rateLimit.parallel === 0) return NOTHING_TO_LEAVE
    return this.#takeSlots(parallelLimits(caller))
  }

  /**
   * Throws `rate_limited` if the key or its user already has the maximum of running calls, as far as this
   * node knows. Counts nothing.
   */
  requireSlot(caller: Caller): void {
    const full = parallelLimits(caller).find((limit) => this.#semaphore.isFull(limit))
    if (full) throw noSlot(full)
  }

  async #takeSlots(limits: readonly ParallelLimit[]): Promise<() => void> {
    const taken: ParallelLimit[] = []
    const leave = (): void => {
      for (const { subject } of taken) this.#semaphore.give(subject)
    }
    for (const limit of limits) {
      if (!(await this.#semaphore.take(limit))) {
        leave()
        throw noSlot(limit)
      }
      taken.push(limit)
    }
    return leave
  }

  /**
   * Counts a call against the limits of its key and its user, and `another` one, or throws `rate_limited`, also if the limit of
   * its model is reached. A refused call is not counted, unless other calls use up one of the limits at the same moment.
   * Returns a promise only if other nodes must be asked.
   */
  enter(settings: Settings, caller: Caller, model: Model, another?: OwnedLimit): void | Promise<void> {
    this.#remember(caller)
    const known = this.#known.of(settings.rateLimits.key, caller, model)
    const limits = another && !isOff(another.limit) ? [...known, another] : known
    if (limits.length === 0) return
    // The other limits are checked before any is counted, so that a call refused by one of them does not
    // count against the others.
    const refreshed = this.#requireAll(limits)
    const own = limits.filter(({ name }) => name !== LIMIT_NAMES.model)
    return refreshed ? refreshed.then(() => this.#takeAll(own)) : this.#takeAll(own)
  }

  /** Throws `rate_limited` if a limit of the key, its user or the model is reached. Counts nothing. */
  requireEntry({ rateLimits }: Settings, caller: Caller, model: Model): void | Promise<void> {
    return this.#requireAll(this.#known.of(rateLimits.key, caller, model))
  }

  // Other nodes are asked only if a limit seems to be reached here.
  #requireAll(limits: readonly OwnedLimit[]): void | Promise<void> {
    if (limits.some((limited) => this.#limits.peek(limited)?.allowed === false))
      return this.#limits.refresh(limits).then(() => {
        for (const limited of limits)
          requireWithinRateLimit(this.#limits.peek(limited), limited.owner, () => subjectOf(limited))
      })
  }

  /**
   * Counts a call against the limit of its model, which others share, or throws `rate_limited`. Nothing is counted twice for one
   * call. Called when the call can be paid and a channel is about to be chosen, or an answer is certain, so that a key whose
   * calls are refused takes no model away from others.
   */
  countModel(call: Pick<IncomingCall, 'isUncounted'>, model: Model): void | Promise<void> {
    if (!call.isUncounted) return
    call.isUncounted = false
    if (!isOff(model.rate_limit)) return this.#takeAll([limitOfModel(model)])
  }

  /**
   * What remains of the limits of a key, its user and, if known, its model; undefined if no limit applies.
   */
  figures({ rateLimits }: Settings, caller: Caller, model: Model | undefined): LimitFigures | undefined {
    const limits = this.#known.of(rateLimits.key, caller, model)
    return limits.length === 0 ? undefined : this.#limits.tightest(limits)
  }

  /**
   * Throws `rate_limited` if less than half is left of a limit of the key, its user or the model, or if other calls of the key
   * or its user take half of those that may run, as far as this node knows. Counts nothing; the call itself counts as running.
   */
  requireHalf({ rateLimits }: Settings, caller: Caller, model: Model): void {
    for (const limited of this.#known.of(rateLimits.key, caller, model)) {
      const { requests, tokens } = this.#limits.tightest([limited])
      if ([requests, tokens].some((one) => one && 2 * one.remaining < one.limit))
        throw rateLimitError(BEHIND_WAIT_MS, limited.owner)
    }
    const full = parallelLimits(caller).find(({ subject, max }) =>
      this.#semaphore.isFull({ subject, max: Math.ceil(max / 2) + 1 }),
    )
    if (full) throw noSlot(full)
  }

  /** Asks the other nodes how much is left of the limits of a key, its user and, if known, its model. */
  refresh({ rateLimits }: Settings, caller: Caller, model: Model | undefined): Promise<void> {
    return this.#limits.refresh(this.#known.of(rateLimits.key, caller, model))
  }

  // If there are no other nodes, limits are counted in the same turn of the event loop in which they were
  // checked, so that no other call comes in between.
  #takeAll(limits: readonly OwnedLimit[]): void | Promise<void> {
    const nowMs = this.#limits.nowMs()
    for (const [index, limited] of limits.entries()) {
      const taken = this.#limits.take(limited, nowMs)
      if (taken instanceof Promise) return this.#takeRest(taken, limited, limits.slice(index + 1))
      requireWithinRateLimit(taken, limited.owner, () => subjectOf(limited))
    }
  }

  async #takeRest(
    taken: Promise<RateLimitVerdict>,
    limited: OwnedLimit,
    rest: readonly OwnedLimit[],
  ): Promise<void> {
    requireWithinRateLimit(await taken, limited.owner, () => subjectOf(limited))
    await this.#takeAll(rest)
  }

  #remember(caller: Caller): void {
    const { token, user } = caller
    if (token.rateLimit.tokens > 0 || hasRateLimit(token.rateLimit) || user.rateLimit.tokens > 0)
      this.#callers.set(token.id, caller)
    else if (this.#callers.size > 0) this.#callers.delete(token.id)
  }

  /**
   * Counts a call that falls back to a model against that model's limit. Returns false if the limit is
   * reached.
   */
  askModel({ name, rate_limit }: Model): boolean | Promise<boolean> {
    return this.#peekOrTake(LIMIT_NAMES.model, name, rate_limit)
  }

  /** Milliseconds until a channel accepts the next request; 0 means now. */
  waitMs({ name, rate_limit }: Channel): number {
    if (isOff(rate_limit)) return 0
    const verdict = this.#limits.peek({ name: LIMIT_NAMES.channel, subject: name, limit: rate_limit })
    return verdict?.allowed === false ? Math.max(1, verdict.waitMs) : 0
  }

  /** Counts one request against a channel's limit. Returns false if the limit is reached. */
  ask({ name, rate_limit }: Channel): boolean | Promise<boolean> {
    return this.#peekOrTake(LIMIT_NAMES.channel, name, rate_limit)
  }

  #peekOrTake(name: LimitName, subject: string, limit: RateLimit): boolean | Promise<boolean> {
    if (isOff(limit)) return true
    return afterRateLimitVerdict(
      this.#limits.take({ name, subject, limit }),
      (verdict) => verdict?.allowed ?? true,
    )
  }

  /** Counts the prompt and output tokens of a call against the limits of its key, user, model and channel. */
  spend(
    { rateLimits }: Settings,
    tokenId: number,
    model: Model,
    channel: Channel | undefined,
    tokens: number,
  ): void {
    const nowMs = this.#limits.nowMs()
    const caller = this.#callers.get(tokenId)
    if (caller)
      for (const limited of clientLimits(rateLimits.key, caller)) this.#limits.spend(limited, tokens, nowMs)
    else this.#spend(LIMIT_NAMES.key, tokenId, rateLimits.key, tokens, nowMs)
    this.#spend(LIMIT_NAMES.model, model.name, model.rate_limit, tokens, nowMs)
    if (channel) this.#spend(LIMIT_NAMES.channel, channel.name, channel.rate_limit, tokens, nowMs)
  }

  /** Counts tokens against the limit of a model only. */
  spendOfModel({ name, rate_limit }: Model, tokens: number): void {
    this.#spend(LIMIT_NAMES.model, name, rate_limit, tokens)
  }

  #spend(name: LimitName, subject: string | number, limit: RateLimit, tokens: number, nowMs?: number): void {
    if (limit.tokens > 0) this.#limits.spend({ name, subject, limit }, tokens, nowMs)
  }
}

/** The limits of one call of a key, and from what they follow. */
interface LimitsOfCall {
  readonly ofKeys: RateLimit
  readonly user: Caller['user']
  readonly model: Model | undefined
  readonly limits: readonly OwnedLimit[]
}

/** Remembers the limits of the last call of each key, because they are needed several times for each call. */
export class KnownLimits {
  readonly #last = new WeakMap<Caller['token'], LimitsOfCall>()

  /** The same as `limitsOfCall`. */
  of(ofKeys: RateLimit, caller: Caller, model: Model | undefined): readonly OwnedLimit[] {
    const { token, user } = caller
    const last = this.#last.get(token)
    if (last && last.model === model && last.user === user && last.ofKeys === ofKeys) return last.limits
    const limits = limitsOfCall(ofKeys, caller, model)
    this.#last.set(token, { ofKeys, user, model, limits })
    return limits
  }
}

/** The limits of a call that are switched on: of its key, its user and, if known, its model. */
export function limitsOfCall(
  ofKeys: RateLimit,
  caller: Caller,
  model: Model | undefined,
): readonly OwnedLimit[] {
  const limits = clientLimits(ofKeys, caller)
  if (!model || isOff(model.rate_limit)) return limits
  return [...limits, limitOfModel(model)]
}

function limitOfModel({ name, rate_limit: limit }: Model): OwnedLimit {
  return { name: LIMIT_NAMES.model, subject: name, limit, owner: `the model ${name}` }
}

/** The limits on the number of running calls of a key and of its user. */
function parallelLimits({ token, user }: Caller): readonly ParallelLimit[] {
  return [
    { subject: `key:${token.id}`, max: token.rateLimit.parallel },
    { subject: `user:${user.id}`, max: user.rateLimit.parallel },
  ].filter(({ max }) => max > 0)
}

function noSlot(limit: ParallelLimit): GatewayError {
  return rateLimitError(PARALLEL_WAIT_MS, 'calls under way at once', parallelLimit(limit))
}

const NO_LIMITS: readonly OwnedLimit[] = []

/**
 * The limits of a key and of its user that are switched on. If an operator has set a limit for this key, it replaces
 * the limit for all keys.
 */
function clientLimits(ofKeys: RateLimit, { token, user }: Caller): readonly OwnedLimit[] {
  const { rateLimit: own } = token
  const isReplaced = token.operator_terms.rateLimit !== undefined
  const ofKey = isReplaced ? own : ofKeys
  if (isOff(ofKey) && isOff(own) && isOff(user.rateLimit)) return NO_LIMITS
  const key = { subject: token.id, owner: 'this API key' }
  const limits = [
    { ...key, name: LIMIT_NAMES.key, limit: ofKey },
    { ...key, name: LIMIT_NAMES.own, limit: isReplaced ? NO_LIMIT : own },
    { name: LIMIT_NAMES.user, subject: user.id, limit: user.rateLimit, owner: "this API key's user" },
  ]
  return limits.filter(({ limit }) => !isOff(limit))
}

/** The subject of a limit, as refused calls show it. */
function subjectOf({ name, subject, tokenId }: OwnedLimit): Pick<RefusedLimit, 'subject' | 'id' | 'name'> {
  if (tokenId !== undefined) return { subject: 'token', id: tokenId, name: null }
  if (typeof subject === 'string') return { subject: 'model', id: null, name: subject }
  return { subject: name === LIMIT_NAMES.user ? 'user' : 'token', id: subject, name: null }
}

function parallelLimit({ subject, max }: ParallelLimit): RefusedLimit {
  const [of, id] = subject.split(':')
  return {
    subject: of === 'user' ? 'user' : 'token',
    id: Number(id),
    name: null,
    kind: 'parallel',
    spent: max,
    held: null,
    left: 0,
    needed: 1,
    resets_at: null,
  }
}

// Most limits are switched off and should cost a call nothing.
function isOff({ requests, tokens }: RateLimit): boolean {
  return requests === 0 && tokens === 0
}

import type { Caller } from '../accounts/authentication/caller.ts'
import { isLimited } from '../domain/operator-terms.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { RateLimit } from '../domain/rate-limit.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import type { CallPlaces, ParallelLimit } from '../limits/call-places.ts'
import {
  whenDecided,
  type LimitName,
  LIMIT_NAMES,
  rateLimited,
  type RateLimiter,
  requireAllowed,
  type OptionalVerdict,
  type SubjectLimit,
} from '../limits/rate-limiter.ts'

/** Time after which a call that found too many others under way may try again. */
const PARALLEL_WAIT_MS = 1_000

const NOTHING_TO_LEAVE = (): void => {}

/** A limit, with its owner for the message. */
interface OwnedLimit extends SubjectLimit {
  readonly owner: string
}

/**
 * Limits of relay calls: for each API key, for all keys of a user, for each model over all clients, for each
 * channel. `docs/api.md: Limits`.
 */
export class CallLimits {
  readonly #limits: RateLimiter
  readonly #places: CallPlaces
  /** Callers whose key or user has a limit on tokens of its own, by token: calls are settled without them. */
  readonly #callers = new Map<number, Caller>()

  constructor(limits: RateLimiter, places: CallPlaces) {
    this.#limits = limits
    this.#places = places
  }

  /**
   * Counts a call as under way, or throws `rate_limited` where its key or its user has as many already. The
   * result ends it. Returns a promise only where other nodes have to be asked.
   */
  begin({ token, user }: Caller): (() => void) | Promise<() => void> {
    const [ofKey, ofUser] = [token.rateLimit.parallel, user.rateLimit.parallel]
    if (ofKey === 0 && ofUser === 0) return NOTHING_TO_LEAVE
    const limits = [
      { subject: `key:${token.id}`, max: ofKey },
      { subject: `user:${user.id}`, max: ofUser },
    ]
    return this.#takePlaces(
      limits.filter(({ max }) => max > 0),
      [],
    )
  }

  #takePlaces(
    limits: readonly ParallelLimit[],
    taken: readonly ParallelLimit[],
  ): (() => void) | Promise<() => void> {
    const leave = (): void => {
      for (const { subject } of taken) this.#places.give(subject)
    }
    const [next, ...rest] = limits
    if (!next) return leave
    const goOn = (isTaken: boolean): (() => void) | Promise<() => void> => {
      if (isTaken) return this.#takePlaces(rest, [...taken, next])
      leave()
      throw rateLimited(PARALLEL_WAIT_MS, 'calls under way at once')
    }
    const taking = this.#places.take(next)
    return taking instanceof Promise ? taking.then(goOn) : goOn(taking)
  }

  /**
   * Takes a call off the limits of its key, its user and its model, or throws `rate_limited`. A refused call
   * counts at none, unless several nodes take the last requests of one of them at one moment. Returns a
   * promise only where other nodes have to be asked.
   */
  enter({ rateLimits }: Settings, caller: Caller, { name, rate_limit }: Model): void | Promise<void> {
    this.#remember(caller)
    const ofClient = clientLimits(rateLimits.key, caller)
    const ofModel = { name: LIMIT_NAMES.model, subject: name, limit: rate_limit, owner: `the model ${name}` }
    const limits = [...ofClient, ofModel].filter(({ limit }) => !isOff(limit))
    // The last ones are looked at first: a call that they refuse does not count at the others.
    for (let at = limits.length - 1; at > 0; at--) {
      const limited = limits[at] as OwnedLimit
      requireAllowed(this.#limits.peek(limited), limited.owner)
    }
    return this.#takeAll(limits)
  }

  #takeAll(limits: readonly OwnedLimit[]): void | Promise<void> {
    for (const [index, limited] of limits.entries()) {
      const taken = this.#limits.take(limited)
      if (taken instanceof Promise) return this.#takeRest(taken, limited, limits.slice(index + 1))
      requireAllowed(taken, limited.owner)
    }
  }

  async #takeRest(
    taken: Promise<OptionalVerdict>,
    { owner }: OwnedLimit,
    rest: readonly OwnedLimit[],
  ): Promise<void> {
    requireAllowed(await taken, owner)
    await this.#takeAll(rest)
  }

  #remember(caller: Caller): void {
    const { token, user } = caller
    if (token.rateLimit.tokens > 0 || isLimited(token.rateLimit) || user.rateLimit.tokens > 0)
      this.#callers.set(token.id, caller)
    else if (this.#callers.size > 0) this.#callers.delete(token.id)
  }

  /** Takes a call that goes on with a model off that one's limit; false where none is left. */
  askModel({ name, rate_limit }: Model): boolean | Promise<boolean> {
    return this.#ask(LIMIT_NAMES.model, name, rate_limit)
  }

  /** Milliseconds until a channel may be asked again; 0 = now. */
  waitMs({ name, rate_limit }: Channel): number {
    if (isOff(rate_limit)) return 0
    const verdict = this.#limits.peek({ name: LIMIT_NAMES.channel, subject: name, limit: rate_limit })
    return verdict?.allowed === false ? Math.max(1, verdict.waitMs) : 0
  }

  /** Takes one request off a channel's limit; false where none is left. */
  ask({ name, rate_limit }: Channel): boolean | Promise<boolean> {
    return this.#ask(LIMIT_NAMES.channel, name, rate_limit)
  }

  #ask(name: LimitName, subject: string, limit: RateLimit): boolean | Promise<boolean> {
    if (isOff(limit)) return true
    return whenDecided(this.#limits.take({ name, subject, limit }), (verdict) => verdict?.allowed ?? true)
  }

  /** Counts the tokens, prompt and output, that a call has used. */
  spend(
    { rateLimits }: Settings,
    tokenId: number,
    model: Model,
    channel: Channel | undefined,
    tokens: number,
  ): void {
    const caller = this.#callers.get(tokenId)
    if (caller)
      for (const { name, subject, limit } of clientLimits(rateLimits.key, caller))
        this.#spend(name, subject, limit, tokens)
    else this.#spend(LIMIT_NAMES.key, tokenId, rateLimits.key, tokens)
    this.spendOfModel(model, tokens)
    if (channel) this.#spend(LIMIT_NAMES.channel, channel.name, channel.rate_limit, tokens)
  }

  /** Counts them for a model alone. */
  spendOfModel({ name, rate_limit }: Model, tokens: number): void {
    this.#spend(LIMIT_NAMES.model, name, rate_limit, tokens)
  }

  #spend(name: LimitName, subject: string | number, limit: RateLimit, tokens: number): void {
    if (limit.tokens > 0) this.#limits.spend({ name, subject, limit }, tokens)
  }
}

/** The limits of a key, whose own replaces the one of all keys where an operator gave it, and of its user. */
function clientLimits(ofKeys: RateLimit, { token, user }: Caller): readonly OwnedLimit[] {
  const isReplaced = token.operator_terms.rateLimit !== undefined
  const limit = isReplaced ? token.rateLimit : ofKeys
  const ofKey = { name: LIMIT_NAMES.key, subject: token.id, limit, owner: 'this API key' }
  const ofUser = {
    name: LIMIT_NAMES.user,
    subject: user.id,
    limit: user.rateLimit,
    owner: "this API key's user",
  }
  if (isReplaced || !isLimited(token.rateLimit)) return [ofKey, ofUser]
  return [ofKey, { ...ofKey, name: LIMIT_NAMES.own, limit: token.rateLimit }, ofUser]
}

// Most limits are off, and calls should not pay for them.
function isOff({ requests, tokens }: RateLimit): boolean {
  return requests === 0 && tokens === 0
}

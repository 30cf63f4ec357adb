import type { Channel, RateLimit } from '../domain/channel.ts'
import type { Model, Settings } from '../domain/settings.ts'
import {
  whenDecided,
  type LimitName,
  LIMIT_NAMES,
  type RateLimiter,
  requireAllowed,
  type OptionalVerdict,
} from '../limits/rate-limiter.ts'

/**
 * Limits of relay calls: for each API key, for each model over all clients, for each channel. `docs/api.md:
 * Limits`.
 */
export class CallLimits {
  readonly #limits: RateLimiter

  constructor(limits: RateLimiter) {
    this.#limits = limits
  }

  /**
   * Takes a call off the limits of its key and its model, or throws `rate_limited`. A refused call counts at
   * neither, unless several nodes take the model's last requests at one moment. Returns a promise only where
   * other nodes have to be asked.
   */
  enter({ rateLimits: { key } }: Settings, tokenId: number, model: Model): void | Promise<void> {
    const { name, rateLimit } = model
    if (isOff(rateLimit)) return isOff(key) ? undefined : this.#takeOfKey(tokenId, key)
    const limited = { name: LIMIT_NAMES.model, subject: name, limit: rateLimit }
    const require = (verdict: OptionalVerdict): void => requireAllowed(verdict, `the model ${name}`)
    require(this.#limits.peek(limited))
    const ofKey = isOff(key) ? undefined : this.#takeOfKey(tokenId, key)
    if (ofKey) return ofKey.then(() => this.#limits.take(limited)).then(require)
    return whenDecided(this.#limits.take(limited), require)
  }

  /** Takes a call that goes on with a model off that one's limit; false where none is left. */
  askModel({ name, rateLimit }: Model): boolean | Promise<boolean> {
    return this.#ask(LIMIT_NAMES.model, name, rateLimit)
  }

  #takeOfKey(tokenId: number, limit: RateLimit): void | Promise<void> {
    const taken = this.#limits.take({ name: LIMIT_NAMES.key, subject: tokenId, limit })
    return whenDecided(taken, (verdict) => requireAllowed(verdict, 'this API key'))
  }

  /** Milliseconds until a channel may be asked again; 0 = now. */
  waitMs({ name, rateLimit }: Channel): number {
    if (isOff(rateLimit)) return 0
    const verdict = this.#limits.peek({ name: LIMIT_NAMES.channel, subject: name, limit: rateLimit })
    return verdict?.allowed === false ? Math.max(1, verdict.waitMs) : 0
  }

  /** Takes one request off a channel's limit; false where none is left. */
  ask({ name, rateLimit }: Channel): boolean | Promise<boolean> {
    return this.#ask(LIMIT_NAMES.channel, name, rateLimit)
  }

  #ask(name: LimitName, subject: string, limit: RateLimit): boolean | Promise<boolean> {
    if (isOff(limit)) return true
    return whenDecided(this.#limits.take({ name, subject, limit }), (verdict) => verdict?.allowed ?? true)
  }

  /** Counts the tokens, prompt and output, that a call has used. */
  spend(
    settings: Settings,
    tokenId: number,
    model: Model,
    channel: Channel | undefined,
    tokens: number,
  ): void {
    this.#spend(LIMIT_NAMES.key, tokenId, settings.rateLimits.key, tokens)
    this.spendOfModel(model, tokens)
    if (channel) this.#spend(LIMIT_NAMES.channel, channel.name, channel.rateLimit, tokens)
  }

  /** Counts them for a model alone. */
  spendOfModel({ name, rateLimit }: Model, tokens: number): void {
    this.#spend(LIMIT_NAMES.model, name, rateLimit, tokens)
  }

  #spend(name: LimitName, subject: string | number, limit: RateLimit, tokens: number): void {
    if (limit.tokens > 0) this.#limits.spend({ name, subject, limit }, tokens)
  }
}

// Most limits are off, and calls should not pay for them.
function isOff({ requests, tokens }: RateLimit): boolean {
  return requests === 0 && tokens === 0
}

import type { Channel, RateLimit } from '../domain/channel.ts'
import type { Model, Settings } from '../domain/settings.ts'
import { type Limits, requireAllowed } from '../limits/limits.ts'

/** The limits of relay calls: of each API key, of each model over all callers, of each channel. `docs/api.md: Limits`. */
export class CallLimits {
  readonly #limits: Limits

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Takes a call off the limits of its key and its model, or throws `rate_limited`; what one refuses counts at neither. */
  enter({ rateLimits: { key } }: Settings, tokenId: number, { name, rateLimit }: Model): void {
    const ofModel = isOff(rateLimit) ? undefined : { name: 'model', whom: name, limit: rateLimit }
    if (ofModel) requireAllowed(this.#limits.look(ofModel), `the model ${name}`)
    if (!isOff(key)) {
      requireAllowed(this.#limits.take({ name: 'key', whom: tokenId, limit: key }), 'this API key')
    }
    if (ofModel) this.#limits.take(ofModel)
  }

  /** Milliseconds until a channel may be asked again; 0 = now. */
  waitMs({ name, rateLimit }: Channel): number {
    if (isOff(rateLimit)) return 0
    const verdict = this.#limits.look({ name: 'channel', whom: name, limit: rateLimit })
    return verdict?.allowed === false ? Math.max(1, verdict.waitMs) : 0
  }

  /** Takes one request off a channel's limit; says whether one was free. */
  ask({ name, rateLimit }: Channel): boolean {
    if (isOff(rateLimit)) return true
    return this.#limits.take({ name: 'channel', whom: name, limit: rateLimit })?.allowed ?? true
  }

  /** Takes note of the tokens, prompt and output, that a call has used. */
  spend(
    settings: Settings,
    tokenId: number,
    model: Model,
    channel: Channel | undefined,
    tokens: number,
  ): void {
    this.#spend('key', tokenId, settings.rateLimits.key, tokens)
    this.#spend('model', model.name, model.rateLimit, tokens)
    if (channel) this.#spend('channel', channel.name, channel.rateLimit, tokens)
  }

  #spend(name: string, whom: string | number, limit: RateLimit, tokens: number): void {
    if (limit.tokens > 0) this.#limits.spend({ name, whom, limit }, tokens)
  }
}

// Most are, and a call should not pay for what nobody asked for.
function isOff({ requests, tokens }: RateLimit): boolean {
  return requests === 0 && tokens === 0
}

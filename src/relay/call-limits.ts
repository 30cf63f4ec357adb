import type { Channel } from '../domain/channel.ts'
import type { Model, Settings } from '../domain/settings.ts'
import { type Limited, type Limits, requireAllowed } from '../limits/limits.ts'

/** The limits of relay calls: of each API key, of each model over all callers, of each channel. `docs/api.md: Limits`. */
export class CallLimits {
  readonly #limits: Limits

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Takes a call off the limits of its key and its model, or throws `rate_limited`; what one refuses counts at neither. */
  enter(settings: Settings, tokenId: number, model: Model): void {
    const key = keyLimit(settings, tokenId)
    const ofModel = modelLimit(model)
    requireAllowed(this.#limits.look(ofModel), `the model ${model.name}`)
    requireAllowed(this.#limits.take(key), 'this API key')
    this.#limits.take(ofModel)
  }

  /** Milliseconds until a channel may be asked again; 0 = now. */
  waitMs(channel: Channel): number {
    const verdict = this.#limits.look(channelLimit(channel))
    return verdict?.allowed === false ? Math.max(1, verdict.waitMs) : 0
  }

  /** Takes one request off a channel's limit; says whether one was free. */
  ask(channel: Channel): boolean {
    return this.#limits.take(channelLimit(channel))?.allowed ?? true
  }

  /** Takes note of the tokens, prompt and output, that a call has used. */
  spend(
    settings: Settings,
    tokenId: number,
    model: Model,
    channel: Channel | undefined,
    tokens: number,
  ): void {
    this.#limits.spend(keyLimit(settings, tokenId), tokens)
    this.#limits.spend(modelLimit(model), tokens)
    if (channel) this.#limits.spend(channelLimit(channel), tokens)
  }
}

function keyLimit({ rateLimits }: Settings, tokenId: number): Limited {
  return { name: 'key', whom: tokenId, limit: rateLimits.key }
}

function modelLimit({ name, rateLimit }: Model): Limited {
  return { name: 'model', whom: name, limit: rateLimit }
}

function channelLimit({ name, rateLimit }: Channel): Limited {
  return { name: 'channel', whom: name, limit: rateLimit }
}

import type { Channel } from '../domain/channel.ts'
import { charge, type Rate } from '../domain/price.ts'
import type { Model, Settings } from '../domain/settings.ts'
import type { Settlement } from '../domain/settlement.ts'
import { NO_USAGE, promptTokens, type Usage } from '../domain/usage.ts'
import type { OpenHold } from '../ledger/open-hold.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { idHeaders } from '../server/id-headers.ts'
import type { Response } from '../server/response.ts'
import type { CallLimits } from './call-limits.ts'
import { type ChargeBasis, NOTHING, type PricedUsage, price } from './charge.ts'
import type { Drains } from './drains.ts'
import type { LocalCount } from './local-count.ts'
import type { MediaRequester } from './media.ts'
import type { Dialect, Prepared, RelayedRequest } from './dialects/dialect.ts'

/**
 * What the log says of a call, beside its route and status. Scalars only: never a word of a prompt or a key.
 */
export interface CallRecord {
  userId?: number
  tokenId?: number
  model?: string
  channel?: string
  upstreamModel?: string
  stream?: boolean
  attempts?: number
  firstByteMs?: number
  /** All prompt tokens, cached or not, and all generated ones. */
  inputTokens?: number
  outputTokens?: number
  quota?: number
  reason?: string
  /** Why the last failed attempt failed. */
  failure?: string
}

/** What the output of a call is expected to stay within. */
export interface OutputBudget {
  /** Output tokens that the hold pays for at first. */
  readonly tokens: number
  /** The request names this maximum, so that the upstream is expected to keep to it. */
  readonly named: boolean
  /** Output tokens by which a hold grows, and what they cost at most in quota units. */
  readonly slice: number
  readonly sliceQuota: number
}

/** Where one attempt goes. */
export interface Target {
  readonly channel: Channel
  readonly prepared: Prepared
}

/** How an upstream broke off in the middle of its answer; `said` where it told why, redacted. */
interface UpstreamCut {
  readonly cause: string
  readonly said: string | undefined
}

/** One admitted call: what was asked, what it may cost, and where the answer goes. */
export class Call implements MediaRequester {
  /** The caller's protocol. */
  readonly dialect: Dialect
  readonly request: RelayedRequest
  /** The caller's own bytes. */
  readonly body: Buffer
  readonly hold: OpenHold
  readonly rate: Rate
  readonly budget: OutputBudget
  readonly response: Response
  readonly record: CallRecord
  readonly count: LocalCount
  readonly drains: Drains
  readonly #metrics: Metrics
  readonly #limits: CallLimits
  readonly #settings: Settings
  readonly #model: Model
  readonly #begunMs: number
  readonly #promptTokens: number
  #firstByteMs: number | null = null
  #cut: UpstreamCut | undefined
  /** The tokens of the prompt, where they were counted. */
  #countedPrompt: number | undefined

  constructor(parts: {
    dialect: Dialect
    request: RelayedRequest
    body: Buffer
    hold: OpenHold
    rate: Rate
    budget: OutputBudget
    response: Response
    record: CallRecord
    count: LocalCount
    drains: Drains
    metrics: Metrics
    limits: CallLimits
    settings: Settings
    model: Model
    begunMs: number
    /** As many as the prompt is expected to have, for progress marks. */
    promptTokens: number
  }) {
    this.dialect = parts.dialect
    this.request = parts.request
    this.body = parts.body
    this.hold = parts.hold
    this.rate = parts.rate
    this.budget = parts.budget
    this.response = parts.response
    this.record = parts.record
    this.count = parts.count
    this.drains = parts.drains
    this.#metrics = parts.metrics
    this.#limits = parts.limits
    this.#settings = parts.settings
    this.#model = parts.model
    this.#begunMs = parts.begunMs
    this.#promptTokens = parts.promptTokens
  }

  /** The id that the client got as `x-request-id`. */
  get id(): string {
    return this.hold.facts.id
  }

  /** The model as the caller asks for it. */
  get model(): string {
    return this.request.model
  }

  /** The token that it is made with. */
  get client(): number {
    return this.hold.account.token.id
  }

  onGone(listener: () => void): () => void {
    const { response } = this
    if (response.isAborted) listener()
    return response.onClosed(() => {
      if (response.isAborted) listener()
    })
  }

  /** Headers of the answer. */
  headers(contentType: string, { prepared: { dropped } }: Target): Record<string, string> {
    const headers = idHeaders(this.hold.facts.id, this.dialect.name === 'messages')
    headers['content-type'] = contentType
    headers['cache-control'] = 'no-store'
    if (dropped.length > 0) headers['x-gateway-dropped'] = dropped.join(', ')
    return headers
  }

  /** As many tokens as the prompt is expected to have, by its length. */
  get expectedPrompt(): number {
    return this.#promptTokens
  }

  /** The tokens of the prompt, to be told; as many as are expected where many others are being counted. */
  async countPrompt(): Promise<number> {
    if (this.#countedPrompt !== undefined) return this.#countedPrompt
    if (this.count.isBusy) return this.#promptTokens
    const { text, extraTokens } = this.dialect.promptText(this.body)
    const tokens = (await this.count.countLowPriority(text)) + extraTokens
    return (this.#countedPrompt ??= tokens)
  }

  // The count that the client was told is charged; one still under way does not delay a charge.
  async #chargedPrompt(): Promise<number> {
    if (this.#countedPrompt !== undefined) return this.#countedPrompt
    const { text, extraTokens } = this.dialect.promptText(this.body)
    return (await this.count.count(text)) + extraTokens
  }

  /** Begins an attempt: what came of an earlier one is no part of the answer. */
  beginAttempt(): void {
    this.#firstByteMs = null
    this.record.attempts = (this.record.attempts ?? 0) + 1
  }

  /** Notes that the first byte of an answer came. */
  noteFirstByte(): void {
    this.#firstByteMs ??= this.#tookMs
  }

  /** Notes that `tokens` of output were generated: a crash from now on is charged them, too. */
  mark(tokens: number): void {
    const amount = charge(this.rate, { ...NO_USAGE, input: this.#promptTokens, output: tokens })
    this.hold.markProgress(amount - this.hold.facts.promptAmount)
  }

  /**
   * Charges an answer. Resolves with the usage that was charged when the charge is durable: gate two.
   * `delivered`: the caller got any of it.
   */
  settle(target: Target, answered: ChargeBasis, delivered: boolean): Promise<Usage> {
    const priced = price(this.rate, () => this.#chargedPrompt(), answered, this.count)
    return priced instanceof Promise
      ? priced.then((later) => this.#charge(target, later, delivered))
      : this.#charge(target, priced, delivered)
  }

  /** How an upstream broke off in the middle of its answer, if one did. */
  get cut(): UpstreamCut | undefined {
    return this.#cut
  }

  /**
   * Notes that an upstream broke off in the middle of its answer. `said`: where it told why, its own words,
   * redacted.
   */
  noteCut(channel: string, cause: string, said?: string): void {
    this.#cut = { cause, said }
    this.record.failure = cause
    this.#metrics.upstreamErrors.add(1, channel, cause)
  }

  // Not by the time of day, which may be set meanwhile.
  get #tookMs(): number {
    return Math.round(performance.now() - this.#begunMs)
  }

  /** Ends a call that delivered nothing. Nobody waits for it: there is nothing to lose. */
  settleForNothing(target: Target | undefined): void {
    this.#charge(target, NOTHING, false).catch(() => {})
  }

  #charge(target: Target | undefined, priced: PricedUsage, delivered: boolean): Promise<Usage> {
    const { facts } = this.hold
    const settlement: Settlement = {
      ...priced,
      delivered,
      endedMs: facts.startedMs + this.#tookMs,
      channel: target?.channel.name ?? facts.channel,
      upstreamModel: target?.prepared.upstreamModel ?? facts.model,
      firstByteMs: this.#firstByteMs,
    }
    const { record } = this
    record.upstreamModel = settlement.upstreamModel
    if (this.#firstByteMs !== null) record.firstByteMs = this.#firstByteMs
    record.inputTokens = promptTokens(priced.usage)
    record.outputTokens = priced.usage.output
    record.quota = priced.quota
    record.reason = priced.reason
    this.#limits.spend(
      this.#settings,
      this.client,
      this.#model,
      target?.channel,
      record.inputTokens + record.outputTokens,
    )
    this.#metrics.settled(facts.model, facts.stream, settlement.endedMs - facts.startedMs, settlement)
    return this.hold.settle(settlement).then(() => priced.usage)
  }
}

import type { ProtocolName } from '@sluice/wire/protocols'
import type { Response } from '@sluice/http1'
import { particularsText } from '../domain/call-detail.ts'
import { charge } from '../domain/charge.ts'
import type { ImageForm, Rate } from '../domain/price.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settlement } from '../domain/records/usage.ts'
import type { Settings } from '../domain/settings.ts'
import type { ToolUse } from '@sluice/wire/tool-use'
import { NO_USAGE, promptTokens, type Usage } from '@sluice/wire/usage'
import type { OpenHold } from '../accounts/ledger/open-hold.ts'
import { promptTextOf } from '@sluice/wire/prompt-text'
import type { PromptText } from '@sluice/wire/prompt-tokens'
import { withCredibleTotal } from '@sluice/wire/reported-usage'
import { idHeaders } from '../http/id-headers.ts'
import type { UpstreamKey } from '../upstreams/key-ring.ts'
import type { AdmittedRequest } from './admitted-request.ts'
import { AttemptLog, type UpstreamCut } from './attempt-log.ts'
import type { CallServices } from './call-services.ts'
import type { ChannelRequest, Dialect, Lasting, Prepared, RelayedRequest } from './dialects/dialect.ts'
import type { Measure } from './dialects/passthrough.ts'
import { type OutputBudget, outputMaximum } from './estimate.ts'
import type { CallRecord, IncomingCall } from './incoming-call.ts'
import type { LocalCount } from './local-count.ts'
import type { MediaRequester } from './media.ts'
import { type ChargeBasis, type Ending, NOTHING, type PricedUsage, priceUsage } from './priced-usage.ts'
import { noteUnlisted, pricesOf, pricingAt } from './target-tools.ts'

/** Destination of one attempt. */
export interface Target {
  readonly channel: Channel
  /** Dialect of the client. */
  readonly client: ProtocolName
  readonly prepared: Prepared
  readonly key: UpstreamKey
  /** The request from which `prepared` was made. */
  readonly request: ChannelRequest
}

/** One admitted call: its request, its hold, and the client's response. */
export class Call implements MediaRequester {
  readonly hold: OpenHold
  readonly attempts: AttemptLog
  readonly services: CallServices
  readonly #incoming: IncomingCall
  #admitted: AdmittedRequest
  #firstByteMs: number | null = null
  #cut: UpstreamCut | undefined
  /** The prompt as the current attempt sends it. */
  #prompt = new SentPrompt(undefined)

  constructor(services: CallServices, incoming: IncomingCall, admitted: AdmittedRequest, hold: OpenHold) {
    this.services = services
    this.#incoming = incoming
    this.#admitted = admitted
    this.hold = hold
    this.attempts = new AttemptLog(incoming.startedAt)
  }

  /** The id that the client receives as `x-request-id`. */
  get id(): string {
    return this.hold.facts.id
  }

  get dialect(): Omit<Dialect, 'read'> {
    return this.#admitted.dialect
  }

  get request(): RelayedRequest {
    return this.#admitted.request
  }

  /** The client's body. */
  get body(): Buffer {
    return this.#admitted.body
  }

  /** Continues with another model under that model's terms. The hold covers the most expensive model. */
  goOnWith(admitted: AdmittedRequest): void {
    if (admitted === this.#admitted) return
    this.#admitted = admitted
    if (admitted.model === admitted.asked) delete this.record.fallback
    else this.record.fallback = admitted.model.name
  }

  /** Whether the channel is chosen by the time to the first byte. */
  get isBalancedByLatency(): boolean {
    return this.#admitted.model.balance === 'latency'
  }

  /** The group whose prices apply. */
  get group(): string {
    return this.#admitted.group.name
  }

  /** The name under which the model is requested: the client's, or that of a fallback. */
  get model(): string {
    return this.request.model
  }

  /** Id of the token that the call uses. */
  get client(): number {
    return this.hold.account.token.id
  }

  takeMemory(bytes: number): void {
    this.#admitted.takeMemory(bytes)
  }

  get response(): Response {
    return this.#incoming.response
  }

  get record(): CallRecord {
    return this.#incoming.record
  }

  get count(): LocalCount {
    return this.services.count
  }

  /** Prices at which the call was admitted. */
  get rate(): Rate {
    return this.#admitted.rate
  }

  get settings(): Settings {
    return this.#admitted.settings
  }

  get budget(): OutputBudget {
    return this.#admitted.estimate.budget
  }

  /** Expected tokens of the prompt, estimated from its length. */
  get expectedPrompt(): number {
    return this.#admitted.estimate.promptTokens
  }

  /** How the upstream's response broke off, if it did. */
  get cut(): UpstreamCut | undefined {
    return this.#cut
  }

  onGone(listener: () => void): () => void {
    const { response } = this
    if (response.isAborted) listener()
    return response.onClosed(() => {
      if (response.isAborted) listener()
    })
  }

  /** Headers of the response. */
  headers(contentType: string, { prepared: { dropped } }: Target): Record<string, string> {
    const headers = idHeaders(this.id, this.dialect.name === 'messages')
    headers['content-type'] = contentType
    headers['cache-control'] = 'no-store'
    if (dropped.length > 0) headers['x-gateway-dropped'] = dropped.join(', ')
    const { asked, model } = this.#admitted
    if (asked.fallback.length > 0) headers['x-gateway-model'] = headerText(model.name)
    return headers
  }

  /**
   * Tokens of the prompt to show to the client. While many other texts are being counted, these are the
   * expected tokens.
   */
  async countPrompt(): Promise<number> {
    if (this.count.isBusy) return this.expectedPrompt
    return (await this.#prompt.shownTokens(this.count)) + (this.request.contextTokens ?? 0)
  }

  /** Tokens of the sent prompt for the charge. Parts that the request only refers to count as in the hold. */
  async countChargedPrompt(): Promise<number> {
    const named = (this.request.contextTokens ?? 0) + this.#admitted.estimate.unknownTokens
    return (await this.#prompt.chargedTokens(this.count)) + named
  }

  /** Begins an attempt. The first byte of an earlier attempt does not count. */
  beginAttempt(target: Target): void {
    if (this.#prompt.prepared !== target.prepared) this.#prompt = new SentPrompt(target.prepared)
    this.#firstByteMs = null
    this.attempts.begin(target)
    this.record.attempts = (this.record.attempts ?? 0) + 1
  }

  /** Records that the first byte of a response arrived. */
  noteFirstByte(): void {
    this.#firstByteMs ??= this.#tookMs
  }

  /** Whether the first byte of the attempt's response arrived. */
  get hasFirstByte(): boolean {
    return this.#firstByteMs !== null
  }

  /** Records the output and the tools used so far. From now on they are charged even after a crash. */
  mark(target: Target, tokens: number, uses: readonly ToolUse[]): void {
    const input = this.expectedPrompt + this.#admitted.estimate.unknownTokens
    const usage = { ...NO_USAGE, input, output: tokens }
    const amount = charge(this.rate, usage, {}, pricesOf(this, target, uses))
    this.hold.markProgress(amount - this.hold.facts.prompt_amount)
  }

  /** Records that an upstream broke off in the middle of its response. `upstreamMessage` is redacted. */
  noteCut(channel: string, cause: string, upstreamMessage?: string): void {
    this.#cut = { cause, upstreamMessage }
    this.record.failure = cause
    this.services.metrics.add('upstreamErrors', 1, channel, cause)
  }

  /**
   * Ends the call with its charge, or without one if `basis` is undefined because nothing was delivered.
   * Resolves with the charged usage when the charge is durable. `delivered`: whether the client received any
   * of the response. `lasting`: the response, if the client knows of it.
   */
  settle(
    target: Target | undefined,
    basis: ChargeBasis | undefined,
    delivered: boolean,
    lasting?: Lasting,
  ): Promise<Usage> {
    const priced = priceResponse(this, target, basis)
    return priced instanceof Promise
      ? priced.then((later) => this.#book(target, later, delivered, lasting))
      : this.#book(target, priced, delivered, lasting)
  }

  /** Warns the operator of tools without a price that the request offered. Returns whether there are any. */
  noteUnlisted(target: Target): boolean {
    return noteUnlisted(this, target, this.services.unpriced)
  }

  /** Ends a call that delivered nothing. Errors are ignored because nothing can be lost. */
  settleForNothing(target: Target | undefined): void {
    this.settle(target, undefined, false).catch(() => {})
  }

  /** Ends the call and charges what was measured. Resolves when the charge is durable. */
  async settleMeasured(
    target: Target,
    ending: Ending,
    { usage, form, isEstimate }: Measure,
    delivered: boolean,
  ): Promise<void> {
    const reason = ending === 'complete' && isEstimate ? 'estimated' : ending
    const priced = { usage, tools: [], quota: charge(this.rate, usage, form), reason } as const
    await this.#book(target, priced, delivered, undefined, form)
  }

  #book(
    target: Target | undefined,
    priced: PricedUsage,
    delivered: boolean,
    lasting: Lasting | undefined,
    form?: ImageForm,
  ): Promise<Usage> {
    const { facts } = this.hold
    const { settings, asked, model, group } = this.#admitted
    const { limits, metrics } = this.services
    const { usage, tools, quota, reason } = priced
    const tookMs = this.#tookMs
    const settlement: Settlement = {
      usage,
      quota,
      reason,
      delivered,
      price_incomplete: target !== undefined && delivered && this.noteUnlisted(target),
      model: target ? model.name : facts.model,
      group: target ? group.name : facts.group,
      ended_ms: facts.started_ms + tookMs,
      channel: target?.channel.name ?? facts.channel,
      upstream_model: target?.prepared.upstreamModel ?? facts.model,
      first_byte_ms: this.#firstByteMs,
      attempts: this.attempts.text(this.#cut?.cause),
      particulars: particularsText(
        usage,
        { form, tools },
        this.attempts.delays,
        target?.prepared.dropped ?? [],
      ),
      note: lasting?.note,
      provenance: target && lasting?.provenance?.(target, this, usage),
    }
    const { record } = this
    const [inputTokens, outputTokens] = [promptTokens(usage), usage.output]
    const { upstream_model: upstreamModel } = settlement
    Object.assign(record, { upstreamModel, inputTokens, outputTokens, quota, reason })
    if (this.#firstByteMs !== null) record.firstByteMs = this.#firstByteMs
    const tokens = inputTokens + outputTokens
    limits.spend(settings, this.client, model, target?.channel, tokens)
    if (asked !== model) limits.spendOfModel(asked, tokens)
    metrics.settled(settlement, facts.stream, tookMs, this.hold.amount)
    return this.hold.settle(settlement).then(() => usage)
  }

  // Uses a monotonic clock, because the system time may be changed.
  get #tookMs(): number {
    return Math.round(performance.now() - this.#incoming.startedAt)
  }
}

/** Escapes characters that are not allowed in a header; names of models may contain them. */
function headerText(name: string): string {
  return name.replace(/[^\t -~]/gu, (character) => encodeURIComponent(character))
}

/** Prices a response of the target; nothing if there is none. */
function priceResponse(
  call: Call,
  target: Target | undefined,
  basis: ChargeBasis | undefined,
): PricedUsage | Promise<PricedUsage> {
  return basis && target ? priceUsage(pricingAt(call, target), credibleBasis(call, target, basis)) : NOTHING
}

/**
 * Removes an implausible token total from the basis of a charge, judged by the maximum that was sent to the
 * target. The ignored total is written to the call's log line.
 */
function credibleBasis({ dialect, record }: Call, { request }: Target, basis: ChargeBasis): ChargeBasis {
  const { reported } = basis
  if (!reported?.byTotal) return basis
  const kept = withCredibleTotal(reported, outputMaximum(dialect.endpoint, request))
  if (kept === reported) return basis
  record.ignoredTotal = reported.byTotal.total
  return { ...basis, reported: kept }
}

/** The prompt of a request without one. */
const NO_PROMPT: PromptText = { text: '', extraTokens: 0, chargedExtraTokens: 0 }

/** Prompt of a request as it is sent to one target. It is read only if its tokens must be counted. */
class SentPrompt {
  readonly prepared: Prepared | undefined
  /** Tokens of its texts, if they were counted already. */
  #tokens: number | undefined

  constructor(prepared: Prepared | undefined) {
    this.prepared = prepared
  }

  /** Tokens to show to the client. They are counted only when no text for a charge is waiting. */
  async shownTokens(count: LocalCount): Promise<number> {
    const { text, extraTokens } = this.#read()
    this.#tokens = await count.countLowPriority(text)
    return this.#tokens + extraTokens
  }

  /** Tokens for the charge. A running low-priority count does not delay them. */
  async chargedTokens(count: LocalCount): Promise<number> {
    const { text, chargedExtraTokens } = this.#read()
    return (this.#tokens ?? (await count.count(text))) + chargedExtraTokens
  }

  #read(): PromptText {
    const { body, prompt, upstreamModel = '' } = this.prepared ?? {}
    if (typeof prompt === 'function') return { ...NO_PROMPT, text: prompt() }
    return prompt && Buffer.isBuffer(body) ? promptTextOf(body, prompt, upstreamModel) : NO_PROMPT
  }
}

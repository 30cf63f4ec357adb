import type { Response, UpstreamResponseHead } from '@sluice/http1'
import { callExtraFactsText } from '../domain/call-detail.ts'
import type { SettlementReason } from '../domain/call-outcome.ts'
import { cacheSavings, chargeOfCall } from '../domain/charge.ts'
import { type ErrorSentToClient, shortNameOrEmpty, type StoredError } from '../domain/failure-cause.ts'
import type { CallRowFacts, ImageForm } from '../domain/price.ts'
import { FAILED_REASONS } from '../domain/call-outcome.ts'
import type { Settlement } from '../domain/records/usage.ts'
import { BATCH_TIER_NAME, serviceRate } from '../domain/service-rate.ts'
import type { ToolUse } from '@sluice/wire/tool-use'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StatedService } from '@sluice/wire/service-tier'
import { NO_USAGE, promptTokens, type Usage } from '@sluice/wire/usage'
import type { OpenHold } from '../accounts/ledger/open-hold.ts'
import type { HourlyReports, ImplausibleUsage, UnpricedTool } from '../alerts/hourly-reports.ts'
import { answerHeaders } from '../http/answer-headers.ts'
import type { RequestMemory } from '../limits/request-memory.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { CallLimits } from './call-limits.ts'
import type { RecordedResponse, ResponseEnding } from './dialects/answer-reader.ts'
import type { FeatureColumns, PlannedCall } from './feature.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { ChargedUsage } from './dialects/passthrough.ts'
import type { DrainedResponses } from './drained-responses.ts'
import { storableMessage, ComparedRequestTexts } from './provider-messages.ts'
import type { TokenCounter } from './token-counter.ts'
import type { MediaRequester } from './media-fetcher.ts'
import { AttemptLog, type UpstreamInterruption } from './attempt-log.ts'
import type { Plans } from './plan.ts'
import { answerOrigin } from './answer-origin.ts'
import { credibleBasis, plausibleMeasure, priceResponse } from './price-response.ts'
import { type ChargeBasis, chargeBasisOfFailure, type PricedUsage } from './price-usage.ts'
import type { CallFeatures } from './call-features.ts'
import type { Plan, AttemptTarget } from './request-stages.ts'
import type { CallSession } from './session.ts'
import { hasOtherModels } from '../domain/records/model.ts'
import type { RunningCall } from './running-call.ts'
import { SentPrompt } from './sent-prompt.ts'
import {
  rateOfStatedService,
  type StatedServiceOfHead,
  statedServiceOfHead,
  statedServiceOfResponse,
  type CallRate,
} from './service-tier-rates.ts'
import { reportUnpricedTools, pricesOfToolUses } from './tool-pricing.ts'

/** Services that all calls share. */
export interface CallServices {
  readonly count: TokenCounter
  readonly drains: DrainedResponses
  readonly memory: RequestMemory
  readonly metrics: Metrics
  readonly limits: CallLimits
  readonly unpriced: Pick<HourlyReports<UnpricedTool>, 'note'>
  readonly implausible: Pick<HourlyReports<ImplausibleUsage>, 'note'>
}

/** Settlement reasons that become `stopped` if a user or an administrator stopped the call. */
const CUT_SHORT: ReadonlySet<SettlementReason> = new Set(['cut', 'failed'])

/** What a stream has generated so far. */
export interface GeneratedOutput {
  readonly tokens: number
  readonly uses: readonly ToolUse[]
  /** How the provider serves the stream, such as its service tier, as stated so far. */
  readonly served: StatedService | undefined
}

/** The running attempt, with what its call needs of it. */
interface RunningAttempt {
  /** Output tokens and cost so far, by the gateway's own count. */
  readonly progress: { readonly tokens: number; readonly cost: number }
  stop(): void
}

/** One admitted call: its plan, its hold (reserved quota), and the client's response. */
export class Call implements RunningCall {
  readonly services: CallServices
  /** The features that take part in the call. */
  readonly features: CallFeatures
  readonly session: CallSession | undefined
  readonly incoming: IncomingCall
  readonly response: Response
  readonly hold: OpenHold
  readonly attempts: AttemptLog
  /** Id of the API key with which the call was made. */
  readonly client: number
  readonly takeMemory: Plan['takeMemory']
  readonly words: ComparedRequestTexts
  #plan: Plan
  #cut: UpstreamInterruption | undefined
  /** The usage that the last attempt reported in an answer that was not delivered because it failed. */
  #undelivered: { readonly target: AttemptTarget; readonly usage: ReportedUsage } | undefined
  #columns: FeatureColumns | undefined
  #error: ErrorSentToClient | undefined
  /** What the head of the upstream's response states about the service tier; undefined if nothing. */
  #servedByHead: StatedServiceOfHead | undefined
  #served: CallRate | undefined
  #attempt: RunningAttempt | undefined
  /** The last model that is tried after filtered answers; undefined if there is none. */
  readonly #lastForFiltered: Plan | undefined
  #isStopped = false
  #hasUnknownEnd = false
  /** Whether the provider reported a usage that is not believed. */
  #isImplausible = false
  #firstByteAt: number | undefined
  /** The prompt as the current attempt sends it to the upstream. */
  #prompt = new SentPrompt(undefined)

  /** `plans` are those of the planned call, with what its features have changed. */
  constructor(
    services: CallServices,
    { incoming, session }: PlannedCall,
    plans: Plans,
    hold: OpenHold,
    features: CallFeatures,
  ) {
    const plan = plans[0]
    this.services = services
    this.features = features
    this.session = session
    this.incoming = incoming
    this.response = incoming.response
    this.#plan = plan
    this.hold = hold
    this.attempts = new AttemptLog(incoming.startedAt)
    this.words = new ComparedRequestTexts(() => ({
      body: plan.request.responses?.composed ?? plan.body,
      shapeOf: () => plan.request.json?.dialect.shape,
      fields: plan.fields,
      url: incoming.request.url,
    }))
    this.client = hold.account.token.id
    this.takeMemory = plan.takeMemory
    this.#lastForFiltered =
      plans.length > 1 ? plans.findLast(({ reason }) => reason === 'content_fallback') : undefined
  }

  get plan(): Plan {
    return this.#plan
  }

  get cut(): UpstreamInterruption | undefined {
    return this.#cut
  }

  /** The last attempt; undefined before the first one. */
  get attempt(): RunningAttempt | undefined {
    return this.#attempt
  }

  switchModel(plan: Plan): void {
    if (plan === this.#plan) return
    this.#plan = plan
    const { record } = this.incoming
    if (plan.model === plan.requestedModel) delete record.fallback
    else record.fallback = plan.model.name
  }

  /** Whether another model is tried if the answer is filtered before it has content. */
  get mayReplaceFiltered(): boolean {
    return this.#lastForFiltered !== undefined && this.plan !== this.#lastForFiltered
  }

  get checked(): MediaRequester['checked'] {
    return this.features.checksFetched ? (file, place) => this.features.fetched(this, file, place) : undefined
  }

  onClientGone(listener: () => void): () => void {
    const { response } = this
    if (response.isAborted) listener()
    return response.onClosed(() => {
      if (response.isAborted) listener()
    })
  }

  headers(contentType: string, target: AttemptTarget | undefined): Record<string, string> {
    const { dialect, requestedModel, model } = this.plan
    const headers = answerHeaders(this.incoming.id, dialect.name)
    headers['content-type'] = contentType
    headers['cache-control'] = 'no-store'
    const dropped = target?.request.dropped ?? []
    if (dropped.length > 0) headers['x-gateway-dropped'] = dropped.join(', ')
    if (target && hasOtherModels(requestedModel)) headers['x-gateway-model'] = headerText(model.name)
    this.features.head(this, headers)
    return headers
  }

  /**
   * Tokens of the prompt to show to the client. While many other texts are being counted, these are the
   * expected tokens.
   */
  async countPrompt(): Promise<number> {
    const { estimate, request } = this.plan
    const { count } = this.services
    if (count.isBusy) return estimate.promptTokens
    return (await this.#prompt.shownTokens(count)) + (request.responses?.contextTokens ?? 0)
  }

  async countChargedPrompt(): Promise<number> {
    const { estimate, request } = this.plan
    const named = (request.responses?.contextTokens ?? 0) + estimate.unknownTokens
    const counted = (await this.#prompt.chargedTokens(this.services.count)) + named
    // What is longer than the context is not read, and not held for.
    return request.inputBounds ? Math.min(counted, estimate.heldTokens) : counted
  }

  /** Begins an attempt. If an earlier attempt got a first byte, its time is forgotten. */
  beginAttempt(target: AttemptTarget, attempt: RunningAttempt, nowMs = performance.now()): void {
    this.#attempt = attempt
    this.#undelivered = undefined
    if (this.#prompt.request !== target.request) this.#prompt = new SentPrompt(target.request)
    this.#firstByteAt = undefined
    this.attempts.begin(target, nowMs)
    this.incoming.record.attempts = (this.incoming.record.attempts ?? 0) + 1
  }

  /** Records what the head of a response states. */
  noteHead(headers: UpstreamResponseHead['headers']): void {
    this.#servedByHead = statedServiceOfHead(headers)
  }

  /** Records the usage that an answer reports which is not delivered; undefined if it reports none. */
  noteUndelivered(target: AttemptTarget, usage: ReportedUsage | undefined): void {
    this.#undelivered = usage && { target, usage }
  }

  statedService(stated: StatedService | undefined): StatedService | undefined {
    return statedServiceOfResponse(this.#servedByHead, stated)
  }

  /** Records when the first byte of a response arrived. */
  noteFirstByte(): void {
    this.#firstByteAt ??= performance.now()
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /**
   * Ends the call at once; it is charged like one that its client left. Returns false if the call has already
   * ended or was stopped before.
   */
  stop(): boolean {
    if (this.hold.isSettled || this.#isStopped) return false
    this.#isStopped = true
    this.#attempt?.stop()
    return true
  }

  /** Whether the first byte of the attempt's response arrived. */
  get hasFirstByte(): boolean {
    return this.#firstByteAt !== undefined
  }

  get firstByteAt(): number | undefined {
    return this.#firstByteAt
  }

  /** Records the cost of the output and the tool uses so far, so that they are charged even after a crash. */
  mark(target: AttemptTarget, soFar: GeneratedOutput): void {
    this.hold.markProgress(this.costOf(target, soFar) - this.hold.facts.prompt_amount)
  }

  /** Cost in quota units of the estimated prompt, this output and these tool uses. */
  costOf(target: AttemptTarget, { tokens, uses, served }: GeneratedOutput): number {
    const { estimate } = this.plan
    const input = estimate.promptTokens + estimate.unknownTokens
    const { rate } = rateOfStatedService(this, target, this.statedService(served))
    return chargeOfCall(
      rate,
      { ...NO_USAGE, input, output: tokens },
      {},
      pricesOfToolUses(this, target, uses),
    )
  }

  /** Records that an upstream broke off in the middle of its response. */
  noteCut(channel: string, cut: UpstreamInterruption): void {
    this.#cut = cut
    this.incoming.record.failure = cut.cause
    this.services.metrics.add('upstreamErrors', 1, channel, cut.cause)
  }

  noteError(error: ErrorSentToClient): void {
    this.#error ??= this.response.early ? { ...error, status: 200 } : error
    this.incoming.hasFailed = true
  }

  /**
   * Ends the call with its charge, or without one if `basis` is undefined because nothing was delivered.
   * Resolves to the charged usage when the charge is durable. `delivered`: whether the client received any of
   * the response. `response`: the response, if the client may know of it.
   */
  settle(
    target: AttemptTarget | undefined,
    basis: ChargeBasis | undefined,
    delivered: boolean,
    response?: RecordedResponse,
  ): Promise<Usage> {
    this.#hasUnknownEnd = basis?.hasUnknownEnd === true
    const credible = target && basis && credibleBasis(this, target, basis)
    const priced = priceResponse(this, target, credible)
    const book = (known: PricedUsage): Promise<Usage> => {
      const bookNow = (columns?: FeatureColumns): Promise<Usage> => {
        this.#columns = columns
        return this.#book(target, known, delivered, basis, response)
      }
      if (!target || !basis || this.#cut || basis.ending === 'failed') return bookNow()
      const isReported = basis.reported !== undefined && !this.#isImplausible
      const told = this.features.answered(this, target, known.usage, credible, isReported)
      return told instanceof Promise ? told.then(bookNow) : bookNow(told)
    }
    // If no tokens must be counted, the call is charged in the same turn of the event loop as the end of the
    // response.
    return priced instanceof Promise ? priced.then(book) : book(priced)
  }

  /**
   * Records how the response was served, for its charge and its row in the usage log. Warns the operator about a tier
   * without a price.
   */
  noteServed(target: AttemptTarget, stated: StatedService | undefined): CallRate {
    const served = rateOfStatedService(this, target, stated)
    if (served.isUnpriced)
      this.services.unpriced.note({
        model: this.plan.request.model,
        channel: target.channel.name,
        tier: served.tier,
      })
    return (this.#served = served)
  }

  /** Records that the reported usage is not believed, and warns the operator. */
  noteImplausible({ channel }: AttemptTarget): void {
    this.#isImplausible = true
    this.services.implausible.note({ model: this.plan.model.name, channel: channel.name })
  }

  noteUnlisted(target: AttemptTarget, reported: Partial<ReportedUsage> = {}): boolean {
    return reportUnpricedTools(this, target, reported, this.services.unpriced)
  }

  /**
   * Ends a call that delivered nothing. Only the usage that the last attempt reported is charged, if there is any.
   * The client need not wait until that is durable.
   */
  settleUndelivered(target = this.#undelivered?.target, usage = this.#undelivered?.usage): void {
    this.settle(target, usage && chargeBasisOfFailure(usage), false).catch(() => {})
  }

  /** Ends the call and charges what was measured. Resolves when the charge is durable. */
  async settleMeasured(
    target: AttemptTarget,
    ending: ResponseEnding,
    measured: ChargedUsage,
    delivered: boolean,
  ): Promise<void> {
    const { rate } = this.noteServed(target, this.statedService(undefined))
    const { form } = measured
    const { usage, held } = plausibleMeasure(this, target, measured)
    const isReported = !measured.isEstimate && held === undefined
    const reason = ending === 'complete' && !isReported ? 'estimated' : ending
    const priced = { usage, tools: [], quota: held ?? chargeOfCall(rate, usage, form), reason } as const
    if (!this.#cut) {
      this.#columns = await this.features.answered(this, target, usage, undefined, isReported)
    }
    await this.#book(target, priced, delivered, undefined, undefined, form)
  }

  #book(
    target: AttemptTarget | undefined,
    priced: PricedUsage,
    delivered: boolean,
    basis: ChargeBasis | undefined,
    response: RecordedResponse | undefined,
    form?: ImageForm,
  ): Promise<Usage> {
    const { facts } = this.hold
    const { settings, requestedModel, model, group } = this.plan
    const { limits, metrics } = this.services
    const { usage, tools, quota } = priced
    const columns = this.features.row()
    const reason = this.#isStopped && CUT_SHORT.has(priced.reason) ? 'stopped' : priced.reason
    const tookMs = this.#msUntil(performance.now())
    const firstByteMs = this.#firstByteAt === undefined ? null : this.#msUntil(this.#firstByteAt)
    const settlement: Settlement = {
      usage,
      quota,
      reason,
      delivered,
      price_incomplete:
        this.#served?.isIncomplete === true ||
        (target !== undefined && delivered && this.noteUnlisted(target, basis?.reported)),
      service_tier: this.#served?.tier ?? '',
      requested_service_tier: this.plan.request.requested?.serviceTier ?? '',
      region: this.#served?.region ?? '',
      ...cacheSavings(this.#served?.rate ?? this.plan.rate, usage),
      batch_saved: target ? this.#savedInBatch(target, usage, form) : 0,
      cache_break: this.#columns?.cache_break ?? '',
      cache_verdict: this.#columns?.cache_verdict ?? '',
      model: target ? model.name : facts.model,
      group: target ? group.name : facts.group,
      ended_ms: facts.started_ms + tookMs,
      channel: target?.channel.name ?? facts.channel,
      upstream_model: target?.request.upstreamModel ?? facts.model,
      first_byte_ms: firstByteMs,
      ...(FAILED.has(reason) && this.#failure),
      ...this.rowFacts(columns),
      particulars: callExtraFactsText(
        usage,
        { form, tools, served: this.#served?.terms, isIdempotent: this.incoming.isIdempotent },
        this.attempts.delays,
        target?.request.dropped ?? [],
      ),
      note: this.#isImplausible
        ? 'usage_implausible'
        : (columns.note ?? response?.note ?? (this.#hasUnknownEnd ? 'unknown_end' : undefined)),
      provenance: target && response?.lasting?.provenance?.(answerOrigin(this, target), usage),
    }
    const { record } = this.incoming
    record.upstreamModel = settlement.upstream_model
    record.inputTokens = promptTokens(usage)
    record.outputTokens = usage.output
    record.quota = quota
    record.reason = reason
    if (firstByteMs !== null) record.firstByteMs = firstByteMs
    const tokens = record.inputTokens + record.outputTokens
    if (!this.incoming.inBatch) {
      limits.spend(settings, this.client, model, target?.channel, tokens)
      if (requestedModel !== model) limits.spendOfModel(requestedModel, tokens)
    }
    metrics.settled(settlement, facts.stream, tookMs, this.hold.amount, !this.incoming.holdFor)
    this.features.settled(this, target, settlement, basis)
    return this.hold.settle(settlement).then(() => usage)
  }

  rowFacts(columns = this.features.row()): CallRowFacts {
    return {
      attempts: this.attempts.text(this.#cut, this.#mayKeepWords ? this.words : undefined),
      guards: columns.guards ?? '',
      transport: this.incoming.transport ?? 'http',
      ...(columns.note && { note: columns.note }),
    }
  }

  /** Quota units that the call cost less in a batch of the provider than at the standard tier. */
  #savedInBatch({ channel, request }: AttemptTarget, usage: Usage, form: ImageForm | undefined): number {
    const served = this.#served
    if (served?.tier !== BATCH_TIER_NAME) return 0
    const { region } = served
    const standard = serviceRate(this.plan.rate, channel, request.upstreamModel, { tier: undefined, region })
    return Math.max(0, chargeOfCall(standard.rate, usage, form) - chargeOfCall(served.rate, usage, form))
  }

  get #mayKeepWords(): boolean {
    return this.plan.settings.options.error_details
  }

  /** Why the call failed; undefined if no error was recorded. */
  get #failure(): Pick<Settlement, 'cause' | 'error_status' | 'error'> | undefined {
    const error = this.#error
    if (!error) return undefined
    const stored: StoredError = {
      type: shortNameOrEmpty(error.type),
      code: shortNameOrEmpty(error.code),
      message: this.#mayKeepWords ? storableMessage(error.message, this.words) : '',
    }
    return { cause: error.cause, error_status: error.status, error: JSON.stringify(stored) }
  }

  // Uses a monotonic clock, because the system time may be changed.
  #msUntil(now: number): number {
    return Math.round(now - this.incoming.startedAt)
  }
}

/** Escapes characters that are not allowed in a header; names of models may contain them. */
function headerText(name: string): string {
  return name.replace(/[^\t -~]/gu, (character) => encodeURIComponent(character))
}

const FAILED: ReadonlySet<string> = new Set(FAILED_REASONS)

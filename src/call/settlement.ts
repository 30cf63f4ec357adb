import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StatedService } from '@sluice/wire/service-tier'
import { promptTokens, type Usage } from '@sluice/wire/usage'
import type { HourlyReports, ImplausibleUsage, UnpricedTool } from '../alerts/hourly-reports.ts'
import { callExtraFactsText } from '../domain/call-detail.ts'
import { FAILED_REASONS, type SettlementReason } from '../domain/call-outcome.ts'
import { cacheSavings, chargeOfCall } from '../domain/charge.ts'
import { type ErrorSentToClient, shortNameOrEmpty, type StoredError } from '../domain/failure-cause.ts'
import type { CallRowFacts, ImageForm } from '../domain/price.ts'
import type { Settlement } from '../domain/records/usage.ts'
import { BATCH_TIER_NAME, serviceRate } from '../domain/service-rate.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { answerOrigin } from './answer-origin.ts'
import type { CallFeatures } from './call-features.ts'
import type { CallLimits } from './call-limits.ts'
import type { RecordedResponse, ResponseEnding } from './dialects/answer-reader.ts'
import type { ChargedUsage } from './dialects/passthrough.ts'
import type { FeatureColumns } from './feature.ts'
import { credibleBasis, plausibleMeasure, priceResponse } from './price-response.ts'
import { type ChargeBasis, chargeBasisOfFailure, type PricedUsage } from './price-usage.ts'
import { storableMessage } from './provider-messages.ts'
import type { AttemptTarget } from './request-stages.ts'
import type { RunningCall } from './running-call.ts'
import { type CallRate, rateOfStatedService } from './service-tier-rates.ts'
import { reportUnpricedTools } from './tool-pricing.ts'

/** Services that learn of the end of a call. */
export interface SettlementServices {
  readonly metrics: Metrics
  readonly limits: CallLimits
  readonly unpriced: Pick<HourlyReports<UnpricedTool>, 'note'>
  readonly implausible: Pick<HourlyReports<ImplausibleUsage>, 'note'>
}

/** A call before its end. */
interface UnsettledCall extends RunningCall {
  readonly services: RunningCall['services'] & SettlementServices
  readonly features: CallFeatures
}

/** Settlement reasons that become `stopped` if a user or an administrator stopped the call. */
const CUT_SHORT: ReadonlySet<SettlementReason> = new Set(['cut', 'failed'])
const FAILED: ReadonlySet<string> = new Set(FAILED_REASONS)

/** The end of one call: what it is charged, and its row in the usage log. */
export class CallSettlement {
  readonly #call: UnsettledCall
  /** The usage that the last attempt reported in an answer that was not delivered because it failed. */
  #undelivered: { readonly target: AttemptTarget; readonly usage: ReportedUsage } | undefined
  #columns: FeatureColumns | undefined
  #error: ErrorSentToClient | undefined
  #served: CallRate | undefined
  #hasUnknownEnd = false
  /** Whether the provider reported a usage that is not believed. */
  #isImplausible = false

  constructor(call: UnsettledCall) {
    this.#call = call
  }

  /** Records the usage that an answer reports which is not delivered; undefined if it reports none. */
  noteUndelivered(target: AttemptTarget, usage: ReportedUsage | undefined): void {
    this.#undelivered = usage && { target, usage }
  }

  /**
   * Records the error that the client gets, for the call's row in the usage log. Only the first error is
   * recorded.
   */
  noteError(error: ErrorSentToClient): void {
    const { response, incoming } = this.#call
    this.#error ??= response.early ? { ...error, status: 200 } : error
    incoming.hasFailed = true
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
    const call = this.#call
    this.#hasUnknownEnd = basis?.hasUnknownEnd === true
    const credible = target && basis && credibleBasis(call, target, basis)
    const priced = priceResponse(call, this, target, credible)
    const book = (known: PricedUsage): Promise<Usage> => {
      const bookNow = (columns?: FeatureColumns): Promise<Usage> => {
        this.#columns = columns
        return this.#book(target, known, delivered, basis, response)
      }
      if (!target || !basis || call.cut || basis.ending === 'failed') return bookNow()
      const isReported = basis.reported !== undefined && !this.#isImplausible
      const told = call.features.answered(call, target, known.usage, credible, isReported)
      return told instanceof Promise ? told.then(bookNow) : bookNow(told)
    }
    // If no tokens must be counted, the call is charged in the same turn of the event loop as the end of the
    // response.
    return priced instanceof Promise ? priced.then(book) : book(priced)
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
    const call = this.#call
    const { rate } = this.noteServed(target, call.statedService(undefined))
    const { form } = measured
    const { usage, held } = plausibleMeasure(call, this, target, measured)
    const isReported = !measured.isEstimate && held === undefined
    const reason = ending === 'complete' && !isReported ? 'estimated' : ending
    const priced = { usage, tools: [], quota: held ?? chargeOfCall(rate, usage, form), reason } as const
    if (!call.cut) this.#columns = await call.features.answered(call, target, usage, undefined, isReported)
    await this.#book(target, priced, delivered, undefined, undefined, form)
  }

  /**
   * Records how the response was served, for its charge and its row in the usage log. Warns the operator about a tier
   * without a price.
   */
  noteServed(target: AttemptTarget, stated: StatedService | undefined): CallRate {
    const { plan, services } = this.#call
    const served = rateOfStatedService(this.#call, target, stated)
    if (served.isUnpriced)
      services.unpriced.note({ model: plan.request.model, channel: target.channel.name, tier: served.tier })
    return (this.#served = served)
  }

  /** Records that the reported usage is not believed, and warns the operator. */
  noteImplausible({ channel }: AttemptTarget): void {
    const { plan, services } = this.#call
    this.#isImplausible = true
    services.implausible.note({ model: plan.model.name, channel: channel.name })
  }

  /**
   * Warns the operator about tools offered in the request, and models in the `reported` usage, that have no
   * price. Returns whether there are any.
   */
  noteUnlisted(target: AttemptTarget, reported: Partial<ReportedUsage> = {}): boolean {
    return reportUnpricedTools(this.#call, target, reported, this.#call.services.unpriced)
  }

  /** What the row has about the call besides its charge, as it is by now. */
  rowFacts(columns = this.#call.features.row()): CallRowFacts {
    const { attempts, cut, words, incoming } = this.#call
    return {
      attempts: attempts.text(cut, this.#mayKeepWords ? words : undefined),
      guards: columns.guards ?? '',
      transport: incoming.transport ?? 'http',
      ...(columns.note && { note: columns.note }),
    }
  }

  #book(
    target: AttemptTarget | undefined,
    priced: PricedUsage,
    delivered: boolean,
    basis: ChargeBasis | undefined,
    response: RecordedResponse | undefined,
    form?: ImageForm,
  ): Promise<Usage> {
    const { features, firstByteAt, hold, incoming, plan, services } = this.#call
    const { facts } = hold
    const { settings, requestedModel, model, group } = plan
    const { usage, tools, quota } = priced
    const columns = features.row()
    const reason = this.#call.isStopped && CUT_SHORT.has(priced.reason) ? 'stopped' : priced.reason
    const tookMs = this.#msUntil(performance.now())
    const firstByteMs = firstByteAt === undefined ? null : this.#msUntil(firstByteAt)
    const settlement: Settlement = {
      usage,
      quota,
      reason,
      delivered,
      price_incomplete:
        this.#served?.isIncomplete === true ||
        (target !== undefined && delivered && this.noteUnlisted(target, basis?.reported)),
      service_tier: this.#served?.tier ?? '',
      requested_service_tier: plan.request.requested?.serviceTier ?? '',
      region: this.#served?.region ?? '',
      ...cacheSavings(this.#served?.rate ?? plan.rate, usage),
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
        { form, tools, served: this.#served?.terms, isIdempotent: incoming.isIdempotent },
        this.#call.attempts.delays,
        target?.request.dropped ?? [],
      ),
      note: this.#isImplausible
        ? 'usage_implausible'
        : (columns.note ?? response?.note ?? (this.#hasUnknownEnd ? 'unknown_end' : undefined)),
      provenance: target && response?.lasting?.provenance?.(answerOrigin(this.#call, target), usage),
    }
    const { record } = incoming
    record.upstreamModel = settlement.upstream_model
    record.inputTokens = promptTokens(usage)
    record.outputTokens = usage.output
    record.quota = quota
    record.reason = reason
    if (firstByteMs !== null) record.firstByteMs = firstByteMs
    const tokens = record.inputTokens + record.outputTokens
    const { limits, metrics } = services
    if (!incoming.inBatch) {
      limits.spend(settings, hold.account.token.id, model, target?.channel, tokens)
      if (requestedModel !== model) limits.spendOfModel(requestedModel, tokens)
    }
    metrics.settled(settlement, facts.stream, tookMs, hold.amount, !incoming.holdFor)
    features.settled(this.#call, target, settlement, basis)
    return hold.settle(settlement).then(() => usage)
  }

  /** Quota units that the call cost less in a batch of the provider than at the standard tier. */
  #savedInBatch({ channel, request }: AttemptTarget, usage: Usage, form: ImageForm | undefined): number {
    const served = this.#served
    if (served?.tier !== BATCH_TIER_NAME) return 0
    const { region } = served
    const { rate } = this.#call.plan
    const standard = serviceRate(rate, channel, request.upstreamModel, { tier: undefined, region })
    return Math.max(0, chargeOfCall(standard.rate, usage, form) - chargeOfCall(served.rate, usage, form))
  }

  get #mayKeepWords(): boolean {
    return this.#call.plan.settings.options.error_details
  }

  /** Why the call failed; undefined if no error was recorded. */
  get #failure(): Pick<Settlement, 'cause' | 'error_status' | 'error'> | undefined {
    const error = this.#error
    if (!error) return undefined
    const stored: StoredError = {
      type: shortNameOrEmpty(error.type),
      code: shortNameOrEmpty(error.code),
      message: this.#mayKeepWords ? storableMessage(error.message, this.#call.words) : '',
    }
    return { cause: error.cause, error_status: error.status, error: JSON.stringify(stored) }
  }

  // Uses a monotonic clock, because the system time may be changed.
  #msUntil(now: number): number {
    return Math.round(now - this.#call.incoming.startedAt)
  }
}

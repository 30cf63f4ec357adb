import type { Response, UpstreamResponseHead } from '@sluice/http1'
import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { StatedService } from '@sluice/wire/service-tier'
import type { ToolUse } from '@sluice/wire/tool-use'
import { NO_USAGE } from '@sluice/wire/usage'
import type { OpenHold } from '../accounts/ledger/open-hold.ts'
import { chargeOfCall } from '../domain/charge.ts'
import type { ErrorSentToClient } from '../domain/failure-cause.ts'
import type { CallRowFacts } from '../domain/price.ts'
import { hasOtherModels } from '../domain/records/model.ts'
import { answerHeaders } from '../http/answer-headers.ts'
import type { RequestMemory } from '../limits/request-memory.ts'
import { AttemptLog, type UpstreamInterruption } from './attempt-log.ts'
import type { CallFeatures } from './call-features.ts'
import type { DrainedResponses } from './drained-responses.ts'
import type { PlannedCall } from './feature.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { MediaRequester } from './media-fetcher.ts'
import type { Plans } from './plan.ts'
import { ComparedRequestTexts } from './provider-messages.ts'
import type { AttemptTarget, Plan } from './request-stages.ts'
import type { RunningCall } from './running-call.ts'
import { SentPrompt } from './sent-prompt.ts'
import {
  rateOfStatedService,
  type StatedServiceOfHead,
  statedServiceOfHead,
  statedServiceOfResponse,
} from './service-tier-rates.ts'
import type { CallSession } from './session.ts'
import { CallSettlement, type SettlementServices } from './settlement.ts'
import type { TokenCounter } from './token-counter.ts'
import { pricesOfToolUses } from './tool-pricing.ts'

/** Services that all calls share. */
export interface CallServices extends SettlementServices {
  readonly count: TokenCounter
  readonly drains: DrainedResponses
  readonly memory: RequestMemory
}

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
  readonly settlement: CallSettlement
  #plan: Plan
  #cut: UpstreamInterruption | undefined
  /** What the head of the upstream's response states about the service tier; undefined if nothing. */
  #servedByHead: StatedServiceOfHead | undefined
  #attempt: RunningAttempt | undefined
  /** The last model that is tried after filtered answers; undefined if there is none. */
  readonly #lastForFiltered: Plan | undefined
  #isStopped = false
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
    this.settlement = new CallSettlement(this)
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
    this.settlement.noteUndelivered(target, undefined)
    if (this.#prompt.request !== target.request) this.#prompt = new SentPrompt(target.request)
    this.#firstByteAt = undefined
    this.attempts.begin(target, nowMs)
    this.incoming.record.attempts = (this.incoming.record.attempts ?? 0) + 1
  }

  /** Records what the head of a response states. */
  noteHead(headers: UpstreamResponseHead['headers']): void {
    this.#servedByHead = statedServiceOfHead(headers)
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
    this.settlement.noteError(error)
  }

  noteUnlisted(target: AttemptTarget, reported?: ReportedUsage): boolean {
    return this.settlement.noteUnlisted(target, reported)
  }

  rowFacts(): CallRowFacts {
    return this.settlement.rowFacts()
  }
}

/** Escapes characters that are not allowed in a header; names of models may contain them. */
function headerText(name: string): string {
  return name.replace(/[^\t -~]/gu, (character) => encodeURIComponent(character))
}

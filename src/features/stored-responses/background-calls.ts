import type { ContinuedCall } from '../../call/dialects/answer-reader.ts'
import { callExtraFactsText } from '../../domain/call-detail.ts'
import { cacheSavings, chargeOfCall } from '../../domain/charge.ts'
import type { Hold } from '../../domain/hold.ts'
import { serviceRate } from '../../domain/service-rate.ts'
import type { StatedService } from '@sluice/wire/service-tier'
import { priceSetFrom, type ChargeRate, chargeRateOf, type ContinuedRequest } from '../../domain/price.ts'
import type { Settlement } from '../../domain/records/usage.ts'
import type { Settings } from '../../domain/settings.ts'
import { type StoredResponse, countStreamedTokens } from '../../domain/stored-response.ts'
import { pricedTools } from '../../domain/tool-price.ts'
import { usesOfOtherKinds, countUsesOfKind, type ToolUse } from '@sluice/wire/tool-use'
import { NO_USAGE, promptTokens, type Usage } from '@sluice/wire/usage'
import type { HourlyReports, ImplausibleUsage } from '../../alerts/hourly-reports.ts'
import type { Ledger } from '../../accounts/ledger/ledger.ts'
import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import { OperatorHold } from '../../accounts/ledger/operator-hold.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { withCredibleTotal, type ReportedUsage } from '@sluice/wire/reported-usage'
import { requestWholeResponse, type WholeResponseOrFailure } from '../../upstreams/exchange.ts'
import type { UpstreamClient } from '../../upstreams/upstream-client.ts'
import type { CallLimits } from '../../call/call-limits.ts'
import type { TokenCounter } from '../../call/token-counter.ts'
import { isImplausibleOutcome, maxTokens } from '../../call/plausible-usage.ts'
import { type CallOrigin, tracedBackgroundCall } from './traced-background-call.ts'
import { toolPricingInputs } from '../../call/tool-pricing.ts'
import { chargedUsage, hasOutput, isFinished, type Outcome, outcomeOf } from './background-outcome.ts'
import { accountOf } from './response-account.ts'
import type { ResponseStore } from './response-store.ts'
import { PROGRESS_INTERVAL_MS, StreamProgress } from './stream-progress.ts'

/** Interval in milliseconds at which upstreams are asked about the responses of open calls. */
const POLL_MS = 60_000
/** Interval in milliseconds at which this node looks up the recorded ends of its calls. */
const LOOK_UP_MS = 5_000
/** Age in milliseconds at which a call is charged the reserved amount, even if its end is unknown. */
const MAX_AGE_MS = 24 * 3_600_000
/** Maximum bytes of a response that an upstream returns when asked. */
const MAX_BYTES = 64 * 1024 * 1024
/** Timeout in milliseconds for polling a response. Other polls wait for it. */
const ASK_MS = 30_000
/** Number of calls that are polled at a time. */
const POLLED_AT_A_TIME = 8

/** Services that background calls need. */
export interface BackgroundCallServices {
  readonly ledger: Ledger
  readonly responses: ResponseStore
  readonly upstreams: UpstreamClient
  readonly metrics: Metrics
  /** Records the calls for export; undefined if no telemetry collector is configured in the environment. */
  readonly telemetry: Telemetry | undefined
  readonly count: TokenCounter
  readonly limits: CallLimits
  readonly implausible: Pick<HourlyReports<ImplausibleUsage>, 'note'>
  readonly settings: () => Settings
  /** Whether there may be other nodes, which may see the ends of calls that this node admitted. */
  readonly isShared: boolean
  readonly log: { warn(fields: object, sentence: string): void }
}

/** A call whose response is generated without its client. */
interface OpenCall {
  /** When an end without usage was first seen, in milliseconds of `performance.now()`. */
  endSeenAt?: number
  readonly hold: OpenHold
  readonly response: StoredResponse
  readonly rate: ChargeRate
  /** Absent for a response that an earlier version stored. */
  readonly sent?: ContinuedRequest | undefined
  /** Trace and session of the request; absent if an earlier run of the process began the call. */
  readonly origin?: CallOrigin | undefined
  /** When the call was admitted, by `performance.now()`: the clock may be set while the call is open. */
  readonly admittedAt: number
  /** Whether this node is still reading the response's stream. */
  isStreamed: boolean
}

/**
 * Calls that continue at their upstreams after their clients have received the first response. Each is
 * settled once, by the node that admitted it: when a GET, a cancel or a poll shows the end of its response,
 * or after a day at the reserved amount. `docs/ledger.md: Background responses`.
 */
export class BackgroundCalls {
  /** Records how much of the responses was streamed to clients. */
  readonly streamed: StreamProgress
  readonly #services: BackgroundCallServices
  readonly #open = new Map<string, OpenCall>()
  readonly #timers: readonly NodeJS.Timeout[]
  #isPolling = false

  constructor(services: BackgroundCallServices) {
    this.#services = services
    this.streamed = new StreamProgress(services.responses, services.count)
    const lookUp = setInterval(() => void this.#guarded(() => this.#lookUp()), LOOK_UP_MS).unref()
    const poll = setInterval(() => void this.#guarded(() => this.#poll()), POLL_MS).unref()
    this.#timers = [lookUp, poll]
  }

  close(): void {
    this.streamed.close()
    for (const timer of this.#timers) clearInterval(timer)
  }

  /**
   * Continues to watch the calls that an earlier run of the process left open, with these holds. Must be called once,
   * before any call.
   */
  async takeUp(holds: readonly OpenHold[]): Promise<void> {
    if (holds.length === 0) return
    const stored = await this.#services.responses.outcomes(holds.map(({ id }) => id))
    const byCall = new Map(stored.map(({ response }) => [response.callId, response]))
    for (const hold of holds) {
      const response = byCall.get(hold.id)
      if (response?.rate) {
        const { price, ratio, quotaPerUnit, sent } = priceSetFrom(response.rate)
        const call = {
          hold,
          response,
          rate: chargeRateOf(price, ratio, quotaPerUnit),
          sent,
          admittedAt: performance.now() - (Date.now() - hold.facts.started_ms),
          isStreamed: false,
        }
        this.#open.set(hold.id, call)
      } else {
        const charged = {
          quota: hold.expectedCost,
          reason: 'crash',
          cause: 'gateway',
          usage: NO_USAGE,
        } as const
        await this.#settle({ hold }, charged)
      }
    }
  }

  /**
   * Stores the response of a call that continues, then keeps the call's hold (reserved quota) until the end
   * is known. Resolves to false if either could not be written durably.
   */
  async begin(call: ContinuedCall, response: StoredResponse): Promise<boolean> {
    const { hold, incoming } = call
    // A stream may end before its first bytes are sent. Such a call was charged at its end, like any other
    // call.
    if (hold.isSettled) return true
    const isKept = (await this.#isStored(response)) && (await hold.park())
    if (hold.isSettled) return true
    if (!isKept) {
      void this.#guarded(() => this.#cancel(hold, response))
      return false
    }
    const { rate, sent, isStreamed } = call
    const { telemetry } = this.#services
    const origin = telemetry && {
      traceparent: incoming.request.headers.traceparent,
      sessionName: call.session?.name,
    }
    const { admittedAt } = hold
    const open = { hold, response, rate, sent, origin, admittedAt, isStreamed }
    this.#open.set(incoming.id, open)
    const onClosed = (): void => {
      open.isStreamed = false
      open.sent = { ...sent, rowFacts: call.rowFacts() }
    }
    incoming.response.onClosed(onClosed)
    if (incoming.response.isAborted) onClosed()
    return true
  }

  async #isStored(response: StoredResponse): Promise<boolean> {
    try {
      await this.#services.responses.store(response)
      return true
    } catch {
      return false
    }
  }

  // The response is cancelled because it is not stored: nobody could retrieve it or be charged for it.
  async #cancel({ id }: OpenHold, response: StoredResponse): Promise<void> {
    const hold = new OperatorHold(id)
    await this.#exchange(hold, response, 'POST', '/cancel')
    hold.settle()
  }

  /**
   * Examines a response that its upstream has just returned, and settles the call if the response has ended.
   * Resolves to whether it has ended.
   */
  async see(response: StoredResponse, body: Buffer): Promise<boolean> {
    if (response.callId === null) return true
    const outcome = await outcomeOf(body, this.#services.count)
    if (outcome) await this.#note(response, outcome)
    return outcome !== undefined
  }

  /** Records how a stream of the response ended, for the charge. */
  async note(response: StoredResponse, status: string, reported: ReportedUsage | undefined): Promise<void> {
    const usage = reported && withCredibleTotal(reported)
    // Only an end with its output is recorded. Without that, what was generated is read from the response later.
    if (hasOutput(usage))
      await this.#note(response, {
        status,
        usage,
        counted: 0,
        tools: usage.tools ?? [],
        ...(usage.served && { served: usage.served }),
      })
  }

  async #note(response: StoredResponse, outcome: Outcome): Promise<void> {
    if (response.callId === null) return
    // A response without its output is charged only after all records of streams were written.
    const isReported = hasOutput(outcome.usage)
    if (!isReported) await this.streamed.noted(response.id)
    const open = this.#open.get(response.callId)
    // A response whose stream is open is not settled yet, and may be deleted before it is.
    if (open?.isStreamed === true || (this.#services.isShared && (!open || !isReported)))
      await this.#services.responses.recordOutcome(response.id, JSON.stringify(outcome))
    if (open) await this.#end(open, outcome)
  }

  async #end(open: OpenCall, outcome: Outcome): Promise<void> {
    const { hold, response, sent } = open
    if (open.isStreamed || hold.isSettled) return
    const isByParts = !hasOutput(outcome.usage) && !isFinished(outcome)
    if (isByParts && this.#mayBeStreamedElsewhere(open)) return
    const streamed = isByParts ? await this.#streamedOf(open) : 0
    const { usage, reason } = chargedUsage(outcome, response.tokens, streamed, sent?.cacheLifetime)
    const uses = reason === 'failed' ? [] : outcome.tools
    const settings = this.#services.settings()
    if (isImplausibleOutcome(usage, uses, maxTokensOf(settings, response))) {
      this.#services.implausible.note({ model: response.model, channel: response.channel })
      const note = 'usage_implausible'
      return this.#settle(open, { quota: hold.amount, usage: NO_USAGE, reason: 'estimated', note })
    }
    const priced = priceOutcome(settings, open, usage, uses, outcome.served)
    return this.#settle(open, { ...priced, reason, ...(reason === 'failed' && { quota: 0 }) })
  }

  // Whether another node may still have to record what it streamed of the response. Nodes do this every few
  // seconds, so the call is examined again at the next look-up.
  #mayBeStreamedElsewhere(open: OpenCall): boolean {
    if (!this.#services.isShared) return false
    const nowMs = performance.now()
    open.endSeenAt ??= nowMs
    return nowMs - open.endSeenAt < 2 * PROGRESS_INTERVAL_MS
  }

  /** Number of output tokens of the response that were streamed to any client, on any node. */
  async #streamedOf({ hold, response }: OpenCall): Promise<number> {
    await this.streamed.noted(response.id)
    const [known] = await this.#services.responses.outcomes([hold.id])
    return countStreamedTokens(known?.streamed ?? [])
  }

  async #settle(
    { hold, response, sent, origin }: Pick<OpenCall, 'hold'> & Partial<OpenCall>,
    charged: OutcomeCharge & Pick<Settlement, 'reason'>,
  ): Promise<void> {
    if (hold.isSettled) return
    const { facts } = hold
    const endedMs = Math.max(Date.now(), facts.started_ms)
    const settlement = {
      ...sent?.rowFacts,
      particulars: particularsOf(sent, NO_USAGE),
      ...charged,
      price_incomplete: charged.price_incomplete === true || response?.priceIncomplete === true,
      requested_service_tier: sent?.requested ?? '',
      delivered: charged.reason !== 'failed',
      ...((charged.reason === 'failed' || charged.reason === 'cut') && { cause: 'provider_failed' as const }),
      model: response?.model ?? facts.model,
      group: response?.group ?? facts.group,
      ended_ms: endedMs,
      channel: response?.channel ?? facts.channel,
      upstream_model: sent?.upstreamModel ?? facts.model,
    }
    const settling = hold.settle(settlement)
    this.#open.delete(facts.id)
    this.#countOnLimits(hold, settlement)
    this.#services.metrics.settled(settlement, facts.stream, endedMs - facts.started_ms, hold.amount)
    const { telemetry, settings } = this.#services
    telemetry?.call(tracedBackgroundCall(hold, settlement, settings(), origin))
    await settling
  }

  // Counts the tokens of a call against the rate limits. The current limits apply; they may have changed
  // since the call began.
  #countOnLimits({ account, facts }: OpenHold, { usage, channel: name, model }: Settlement): void {
    const { limits, settings: current } = this.#services
    const settings = current()
    const channel = settings.channels.find((one) => one.name === name)
    const tokens = promptTokens(usage) + usage.output
    limits.spend(settings, account.token.id, settings.models.get(model), channel, tokens)
    if (facts.model !== model) limits.spendOfModel(settings.models.get(facts.model), tokens)
  }

  /** Charges this node's calls of which another node has seen the end, or this one while their streams were open. */
  async #lookUp(): Promise<void> {
    for (const [id, { hold }] of this.#open) if (hold.isSettled) this.#open.delete(id)
    if (this.#open.size === 0) return
    for (const { response, outcome } of await this.#services.responses.outcomes([...this.#open.keys()])) {
      const open = this.#open.get(response.callId ?? '')
      if (open && outcome !== null) await this.#end(open, JSON.parse(outcome) as Outcome)
    }
  }

  // The ages of calls are checked first, so that an upstream that does not respond delays no charge.
  async #poll(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    const calls = [...this.#open.values()].filter(({ isStreamed }) => !isStreamed)
    try {
      await Promise.all(calls.map((call) => this.#guarded(() => this.#expire(call))))
      for (let at = 0; at < calls.length; at += POLLED_AT_A_TIME) {
        const some = calls.slice(at, at + POLLED_AT_A_TIME)
        await Promise.all(some.map((call) => this.#guarded(() => this.#pollOne(call))))
      }
    } finally {
      this.#isPolling = false
    }
  }

  async #expire(open: OpenCall): Promise<void> {
    const { hold, admittedAt } = open
    if (performance.now() - admittedAt > MAX_AGE_MS)
      await this.#settle(open, { quota: hold.amount, reason: 'estimated', usage: NO_USAGE })
  }

  async #pollOne({ hold, response }: OpenCall): Promise<void> {
    if (hold.isSettled) return
    const came = await this.#exchange(hold, response, 'GET', '')
    if (came && !('failure' in came) && came.status === 200) await this.see(response, came.body)
  }

  // Asks the upstream about a response, or cancels it. Resolves to undefined if the response's channel no
  // longer exists.
  async #exchange(
    hold: Hold,
    response: StoredResponse,
    method: 'GET' | 'POST',
    below: '' | '/cancel',
  ): Promise<WholeResponseOrFailure | undefined> {
    const { responses, settings, upstreams } = this.#services
    const account = accountOf(response, settings(), responses)
    if (!account) return undefined
    const path = `/responses/${encodeURIComponent(response.upstreamId)}${below}`
    const sent = { method, protocol: 'responses', path, headers: [], body: Buffer.alloc(0) } as const
    return requestWholeResponse(upstreams, { hold, ...account }, sent, {
      maxBytes: MAX_BYTES,
      timeoutMs: ASK_MS,
    })
  }

  // Errors are ignored, because the next round repeats the work.
  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#services.log.warn(
        { err: error },
        'calls in the background could not be looked after; tried again',
      )
    }
  }
}

/** The charge for a response that was generated in the background. */
type OutcomeCharge = Pick<
  Settlement,
  | 'quota'
  | 'usage'
  | 'particulars'
  | 'service_tier'
  | 'region'
  | 'price_incomplete'
  | 'cache_saved'
  | 'cache_surcharge'
  | 'note'
>

const NO_DELAYS = { queuedMs: 0, connectMs: 0 }

function maxTokensOf(settings: Settings, { model, channel: name }: StoredResponse): number {
  const channels = settings.channels.filter((channel) => channel.name === name)
  return maxTokens(
    channels.map((channel) => ({ channel })),
    settings.models.get(model),
    settings,
  )
}

/** Prices a response by what it reported, including uses of the provider's tools. */
function priceOutcome(
  settings: Settings,
  { rate, response, sent }: Pick<OpenCall, 'rate' | 'response' | 'sent'>,
  reported: Usage,
  uses: readonly ToolUse[],
  served: StatedService | undefined,
): OutcomeCharge {
  const channel = settings.channels.find(({ name }) => name === response.channel)
  const model = sent?.upstreamModel ?? channel?.model_mapping.get(response.model) ?? response.model
  const searches = Math.max(reported.webSearches, countUsesOfKind(uses, 'web_search'))
  // The response repeats the configuration of the tools that it used, so the request's is not needed.
  const pricing = toolPricingInputs(settings, rate, channel, { dialect: 'responses', model, offered: [] })
  const tools = pricedTools(searches, usesOfOtherKinds(uses, 'web_search'), pricing)
  const usage = { ...reported, webSearches: searches }
  const tier = served?.tier ?? sent?.tier
  const region = served?.region ?? sent?.region
  const at =
    channel &&
    serviceRate(rate, channel, model, {
      ...(tier !== undefined && { tier }),
      ...(region !== undefined && { region }),
    })
  const isGuessed = served?.tier === undefined && sent?.isGuessed === true
  return {
    quota: chargeOfCall(at?.rate ?? rate, usage, {}, tools),
    usage,
    ...cacheSavings(at?.rate ?? rate, usage),
    service_tier: at?.tier ?? '',
    region: at?.region ?? '',
    ...((at?.isUnpriced || isGuessed) && { price_incomplete: true }),
    particulars: particularsOf(sent, usage, { tools, served: at?.terms }),
  }
}

function particularsOf(
  { delays = NO_DELAYS, dropped = [], isIdempotent }: Partial<ContinuedRequest> = {},
  usage: Usage,
  { tools, served }: Pick<Parameters<typeof callExtraFactsText>[1], 'tools' | 'served'> = { tools: [] },
): string | undefined {
  return callExtraFactsText(usage, { form: undefined, tools, served, isIdempotent }, delays, dropped)
}

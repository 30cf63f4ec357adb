import { NO_USAGE } from '@sluice/wire/usage'
import { findChargedBalances } from '../../accounts/ledger/find-charged-balances.ts'
import type { Ledger } from '../../accounts/ledger/ledger.ts'
import { affordableAmount } from '../../accounts/ledger/charged-balances.ts'
import type { SettlementReason } from '../../domain/call-outcome.ts'
import { chargeOfCachedAnswer } from '../../domain/charge.ts'
import type { HoldFacts, Settlement } from '../../domain/records/usage.ts'
import type { ContentCapture } from '../../content/content-capture.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { CallLimits } from '../../relay/call-limits.ts'
import { planContentCapture, type ContentLogForCalls } from '../../relay/capture-content.ts'
import { waitLimitsOf } from '../../relay/wait-limits.ts'
import { sessionInRow, type Sessions } from '../../relay/session.ts'
import { tracedHit } from '../../relay/telemetry/traced-hit.ts'
import type { AnswerFacts } from './answer-facts.ts'
import type { CachedCall } from './shared-answer.ts'

/** Services that are needed to charge calls which get the answer of another call. */
export interface CacheHitServices {
  readonly ledger: Ledger
  readonly limits: CallLimits
  readonly metrics: Metrics
  readonly sessions: Sessions
  readonly content: ContentLogForCalls
  readonly telemetry: Telemetry | undefined
}

/** Charges and records calls that get the answer of another call. */
export class CacheHits {
  readonly #services: CacheHitServices

  constructor(services: CacheHitServices) {
    this.#services = services
  }

  /** Begins to collect the content of a call for the content log; undefined if it is not logged. */
  capture({
    caller,
    settings,
    routes,
    body,
    received = body,
    incoming: { id, response },
  }: CachedCall): ContentCapture | undefined {
    const group = routes.resolutions[0]?.group.name ?? ''
    return planContentCapture(this.#services, {
      id,
      caller,
      settings,
      response,
      body: received,
      groups: [group],
      servedBy: () => group,
    })?.()
  }

  /**
   * Charges the configured part of the original call's cost; without `facts`, charges nothing. Resolves when
   * the charge is durable; rejects if the balances are too low. The usage row has no tokens, because no
   * provider counted any.
   */
  async settle(
    call: CachedCall,
    facts: AnswerFacts | undefined,
    reason: SettlementReason,
    content: ContentCapture | undefined,
  ): Promise<void> {
    try {
      await this.#settle(call, facts, reason, content)
      content?.relayed()
    } catch (error) {
      content?.forget()
      throw error
    }
  }

  async #settle(
    call: CachedCall,
    facts: AnswerFacts | undefined,
    reason: SettlementReason,
    content: ContentCapture | undefined,
  ): Promise<void> {
    const { ledger, limits, metrics, telemetry, sessions } = this.#services
    const { caller, settings, routes, request, incoming } = call
    const { startedMs } = incoming
    const model = routes.resolutions[0]?.model ?? routes.requestedModel
    const group = routes.resolutions[0]?.group
    const quota = facts ? chargeOfCachedAnswer(call.options.price, facts.quota) : 0
    const groups = group ? [group] : []
    // If the accounts are in memory, they are found and charged in one turn of the event loop, without an
    // `await` in between.
    const found = findChargedBalances(ledger.accounts, { ...caller, groups, startedMs })
    const payer = found instanceof Promise ? await found : found
    const { account, budgets } = payer
    const holdFacts = this.#holdFacts(call, model.name)
    const hold =
      quota === 0 || quota <= affordableAmount(account, budgets)
        ? ledger.admit(account, quota, holdFacts, budgets)
        : await ledger.admitInTime(payer, quota, holdFacts, waitLimitsOf(incoming, settings.options))
    const tookMs = Math.round(performance.now() - incoming.startedAt)
    const settlement: Settlement = {
      usage: NO_USAGE,
      quota,
      reason,
      delivered: true,
      cache: 'hit',
      guards: facts?.guards ?? '',
      hit_saved: facts ? facts.quota - quota : 0,
      service_tier: '',
      requested_service_tier: request.serviceTier ?? '',
      region: '',
      model: facts?.model ?? model.name,
      group: holdFacts.group,
      ended_ms: startedMs + tookMs,
      channel: '',
      upstream_model: '',
      first_byte_ms: tookMs,
    }
    Object.assign(incoming.record, { quota, reason, cache: 'hit', inputTokens: 0, outputTokens: 0 })
    metrics.add('answerCache', 1, 'hit')
    metrics.settled(settlement, request.stream, tookMs, hold.amount)
    limits.spend(settings, caller.token.id, model, undefined, facts?.tokens ?? 0)
    if (routes.requestedModel !== model) limits.spendOfModel(routes.requestedModel, facts?.tokens ?? 0)
    if (telemetry) {
      incoming.isTraced = true
      const sessionName = sessions.of(caller.user.id, request)?.name
      const awaitsContent = content?.isAwaited === true
      telemetry.call(tracedHit(call, incoming, hold, settlement, { sessionName, awaitsContent }))
    }
    await hold.settle(settlement)
  }

  #holdFacts({ caller, settings, routes, request, dialect, incoming }: CachedCall, model: string): HoldFacts {
    return {
      id: incoming.id,
      model,
      requested_model: request.model,
      channel: '',
      group: routes.resolutions[0]?.group.name ?? '',
      stream: request.stream,
      price_version: settings.priceVersion,
      kind: dialect.endpoint,
      session: sessionInRow(this.#services.sessions.of(caller.user.id, request)),
      started_ms: incoming.startedMs,
      prompt_amount: 0,
    }
  }
}

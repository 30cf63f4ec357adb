import { NO_USAGE } from '@sluice/wire/usage'
import { findChargedBalances } from '../../accounts/ledger/find-charged-balances.ts'
import type { Ledger } from '../../accounts/ledger/ledger.ts'
import { affordableAmount } from '../../accounts/ledger/charged-balances.ts'
import type { SettlementReason } from '../../domain/call-outcome.ts'
import { chargeOfCachedAnswer } from '../../domain/charge.ts'
import type { HoldFacts, Settlement } from '../../domain/records/usage.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { WatchedRepeat } from '../../call/answer-request.ts'
import type { CallLimits } from '../../call/call-limits.ts'
import { waitLimitsOf } from '../../call/wait-limits.ts'
import { type CallSession, sessionInRow, type Sessions } from '../../call/session.ts'
import type { AnswerFacts } from './answer-facts.ts'
import type { CachedCall } from './shared-answer.ts'

/** Services that are needed to charge calls which get the answer of another call. */
export interface CacheHitServices {
  readonly ledger: Ledger
  readonly limits: CallLimits
  readonly metrics: Metrics
  readonly sessions: Sessions
}

/** Charges and records calls that get the answer of another call. */
export class CacheHits {
  readonly #services: CacheHitServices

  constructor(services: CacheHitServices) {
    this.#services = services
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
    repeat: WatchedRepeat,
  ): Promise<void> {
    try {
      await this.#settle(call, facts, reason, repeat)
      repeat.ended(true)
    } catch (error) {
      repeat.ended(false)
      throw error
    }
  }

  async #settle(
    call: CachedCall,
    facts: AnswerFacts | undefined,
    reason: SettlementReason,
    repeat: WatchedRepeat,
  ): Promise<void> {
    const { ledger, limits, metrics, sessions } = this.#services
    const { caller, settings, routes, request, incoming } = call
    const { startedMs } = incoming
    const session = sessions.of(caller.user.id, request)
    const model = routes.resolutions[0]?.model ?? routes.requestedModel
    const group = routes.resolutions[0]?.group
    await limits.countModel(incoming, routes.requestedModel)
    const quota = facts ? chargeOfCachedAnswer(call.options.price, facts.quota) : 0
    const groups = group ? [group] : []
    // If the accounts are in memory, they are found and charged in one turn of the event loop, without an
    // `await` in between.
    const found = findChargedBalances(ledger.accounts, { ...caller, groups, startedMs })
    const payer = found instanceof Promise ? await found : found
    const { account, budgets } = payer
    const holdFacts = holdFactsOf(call, model.name, session)
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
      transport: incoming.transport ?? 'http',
      hit_saved: facts ? facts.quota - quota : 0,
      service_tier: '',
      requested_service_tier: request.requested?.serviceTier ?? '',
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
    repeat.settled({ hold, settlement, session })
    await hold.settle(settlement)
  }
}

function holdFactsOf(
  { settings, routes, request, dialect, incoming }: CachedCall,
  model: string,
  session: CallSession | undefined,
): HoldFacts {
  return {
    id: incoming.id,
    model,
    requested_model: request.model,
    channel: '',
    group: routes.resolutions[0]?.group.name ?? '',
    stream: request.stream,
    price_version: settings.priceVersion,
    kind: dialect.endpoint,
    session: sessionInRow(session),
    started_ms: incoming.startedMs,
    prompt_amount: 0,
  }
}

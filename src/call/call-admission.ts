import { NO_USAGE } from '@sluice/wire/usage'
import { findChargedBalances } from '../accounts/ledger/find-charged-balances.ts'
import type { Ledger } from '../accounts/ledger/ledger.ts'
import { OpenHold } from '../accounts/ledger/open-hold.ts'
import { affordableAmount, NO_BUDGETS } from '../accounts/ledger/charged-balances.ts'
import { priceVersionOf } from '../accounts/ledger/price-sets.ts'
import { chargeOfCall } from '../domain/charge.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { HoldFacts } from '../domain/records/usage.ts'
import { GatewayError } from '../errors.ts'
import type { Attempts } from './attempts.ts'
import type { Body } from './body-reader.ts'
import { Call, type CallServices } from './call.ts'
import type { DialectFacts } from './dialects/dialect-facts.ts'
import type { PlannedCall } from './feature.ts'
import type { IncomingCall } from './incoming-call.ts'
import { FREE_STREAM_ESTIMATE } from './estimate.ts'
import { waitLimitsOf } from './wait-limits.ts'
import { errorSentToClient, GATEWAY_STOPPING } from './failure.ts'
import { formFieldTexts } from './record-refusal.ts'
import type { AdmittedRequest, KnownState } from './answer-request.ts'
import type { LifeCycle } from './life-cycle.ts'
import { type CallRates, groupsOfPlans, planCall, type Plans } from './plan.ts'
import type { Plan } from './request-stages.ts'
import type { RunningCalls } from './running-calls.ts'
import { type Sessions, sessionInRow } from './session.ts'
import { asLineOfBatch, rateOfRequestedService } from './service-tier-rates.ts'

const NO_BYTES = Buffer.alloc(0)
const NO_FIELDS: readonly string[] = []

/** Services that are needed to admit calls. */
export interface AdmissionServices extends CallServices {
  readonly lifeCycle: LifeCycle
  readonly ledger: Ledger
  readonly sessions: Sessions
}

/** What makes the calls that are admitted. */
export type AdmittedAttempts = Pick<Attempts, 'isStopped' | 'run'>

/** What a call would hold. */
export interface MeasuredCall {
  /** Quota units. */
  readonly amount: number
  /** The groups that may serve the call. */
  readonly groups: readonly Plan['group'][]
  readonly plans: Plans
}

/** A call that is neither charged nor recorded. */
export interface UnchargedCall extends Pick<AdmittedRequest, 'caller' | 'settings' | 'request'> {
  readonly dialect: DialectFacts
  /** The only channel that can serve the call. */
  readonly channel: Channel
  /** States that features already have for the call. */
  readonly known?: KnownState | undefined
}

/**
 * Admits calls: reserves their maximum cost as a hold, lets `Attempts` make the call, and ensures that each
 * hold is settled.
 */
export class CallAdmission {
  readonly #services: AdmissionServices
  readonly #rates: CallRates
  readonly #attempts: AdmittedAttempts
  readonly #running: RunningCalls

  constructor(
    services: AdmissionServices,
    rates: CallRates,
    attempts: AdmittedAttempts,
    running: RunningCalls,
  ) {
    this.#services = services
    this.#rates = rates
    this.#attempts = attempts
    this.#running = running
  }

  /** What the call of a request would hold, and the groups that may serve it. Rejects like `admit`; nothing is reserved. */
  async measure({
    dialect,
    body,
    settings,
    request,
    routes: { requestedModel, resolutions },
    inBatch,
  }: Pick<AdmittedRequest, 'dialect' | 'settings' | 'request' | 'routes'> &
    Pick<IncomingCall, 'inBatch'> & {
      readonly body: Body
    }): Promise<MeasuredCall> {
    const common = {
      dialect,
      body: body.bytes,
      fields: NO_FIELDS,
      takeMemory: body.hold,
      settings,
      requestedModel,
    }
    const served = inBatch ? asLineOfBatch(request) : request
    const plans = await planCall(common, served, resolutions, this.#rates)
    return { amount: amountOf(plans), groups: groupsOfPlans(plans), plans }
  }

  /** Reserves the maximum cost of a request and makes its call. */
  async admit(
    {
      dialect,
      body,
      caller,
      settings,
      request: called,
      routes,
      received = body,
      mayNotWait,
    }: AdmittedRequest,
    incoming: IncomingCall,
    known?: KnownState,
  ): Promise<void> {
    const { ledger } = this.#services
    const request = incoming.inBatch ? asLineOfBatch(called) : called
    const { requestedModel, resolutions } = routes
    const bytes = 'parts' in body ? NO_BYTES : body.bytes
    const fields = 'parts' in body ? formFieldTexts(body) : NO_FIELDS
    const common = { dialect, body: bytes, fields, takeMemory: body.hold, settings, requestedModel }
    const possible = await planCall(common, request, resolutions, this.#rates)
    const { startedMs } = incoming
    const session = this.#services.sessions.of(caller.user.id, request)
    const priceVersion = priceVersionOf(settings, possible)
    for (const plan of possible) if (plan.rate !== this.#rates.free) ledger.priceSets.note(plan, priceVersion)
    // Accounts in memory are found and charged in the same turn of the event loop. After an `await`, they
    // might have been dropped from memory and read a second time.
    const charged = { ...caller, groups: groupsOfPlans(possible), startedMs }
    const found = findChargedBalances(ledger.accounts, charged)
    let payer = found instanceof Promise ? await found : found
    let plans = possible
    let amount = amountOf(plans)
    const plannedCall = {
      incoming,
      caller,
      settings,
      dialect,
      request,
      received,
      session,
      plans,
      payer,
      amount,
    }
    const features = this.#services.lifeCycle.begin(plannedCall, known)
    const changing = features.plan(plans)
    plans = changing instanceof Promise ? await changing : changing
    if (plans !== possible) amount = amountOf(plans)
    if (changing instanceof Promise) payer = await findChargedBalances(ledger.accounts, charged)
    const [first] = plans
    const { account, budgets } = payer
    const facts: HoldFacts = {
      id: incoming.id,
      model: first.model.name,
      requested_model: request.model,
      channel: first.channels[0]?.channel.name ?? '',
      group: first.group.name,
      stream: request.stream,
      price_version: priceVersion,
      kind: dialect.endpoint,
      session: sessionInRow(session),
      started_ms: startedMs,
      prompt_amount: chargeOfCall(rateOfRequestedService(first), {
        ...NO_USAGE,
        ...first.request.measured?.prompt,
        input: first.estimate.promptTokens + first.estimate.unknownTokens,
      }),
    }
    // The gateway may have begun to stop while the request body was arriving.
    if (this.#attempts.isStopped) throw GATEWAY_STOPPING.refusal
    const hold =
      request.charging === 'free'
        ? OpenHold.unrecorded(account, facts)
        : incoming.holdFor
          ? incoming.holdFor(amount, facts)
          : request.charging === 'unpaid' || amount <= affordableAmount(account, budgets)
            ? ledger.admit(account, amount, facts, budgets)
            : await ledger.admitInTime(payer, amount, facts, {
                ...waitLimitsOf(incoming, settings.options),
                ...(mayNotWait && { waitMs: 0 }),
              })
    const call = new Call(this.#services, plannedCall, plans, hold, features)
    // A call whose request is only made begins with its answer.
    if (incoming.inBatch !== 'request') features.admitted(call)
    const entry = this.#running.add(call, caller)
    try {
      // The gateway may have begun to stop while the call waited for quota.
      if (this.#attempts.isStopped) throw GATEWAY_STOPPING.refusal
      if (!ledger.isWritable) await hold.whenDurable()
      if (hold.writeFailure) throw hold.writeFailure
      await this.#attempts.run(call, plans)
    } catch (error) {
      if (!call.response.isAborted) call.noteError(errorSentToClient(error, call.attempts.lastFailure))
      throw error
    } finally {
      this.#running.delete(entry)
      if (!hold.isSettled && !hold.isParked) call.settlement.settleUndelivered()
      features.closed(call)
    }
  }

  /** Makes a call that is neither charged nor recorded. The API key must exist. */
  async makeUncharged(
    { dialect, caller, settings, request, channel, known }: UnchargedCall,
    incoming: IncomingCall,
  ): Promise<void> {
    const { accounts } = this.#services.ledger
    const account = accounts.get(caller.token.id) ?? (await accounts.load(caller.token.id))
    if (!account) throw new GatewayError('invalid_api_key', 'this API key is unknown')
    incoming.record.stream = request.stream
    const hold = OpenHold.unrecorded(account, {
      id: incoming.id,
      model: request.model,
      requested_model: request.model,
      channel: channel.name,
      group: '',
      stream: request.stream,
      price_version: settings.priceVersion,
      kind: dialect.endpoint,
      session: '',
      started_ms: incoming.startedMs,
      prompt_amount: 0,
    })
    const model = settings.models.get(request.model)
    const plan: Plan = {
      dialect,
      request,
      body: NO_BYTES,
      fields: NO_FIELDS,
      takeMemory: () => {},
      settings,
      requestedModel: model,
      model,
      group: { name: '' },
      rate: this.#rates.free,
      estimate: FREE_STREAM_ESTIMATE,
      channels: await request.forChannels([channel], model),
    }
    const planned: PlannedCall = {
      incoming,
      caller,
      settings,
      dialect,
      request,
      received: undefined,
      session: undefined,
      plans: [plan],
      payer: { account, budgets: NO_BUDGETS },
      amount: 0,
    }
    const features = this.#services.lifeCycle.begin(planned, known)
    const call = new Call(this.#services, planned, planned.plans, hold, features)
    features.admitted(call)
    try {
      await this.#attempts.run(call, [plan])
    } finally {
      if (!hold.isSettled) call.settlement.settleUndelivered()
      features.closed(call)
    }
  }
}

/** Quota units to hold for a call, whichever of its plans serves it. */
function amountOf(plans: Plans): number {
  let most = 0
  for (const { estimate } of plans) most = Math.max(most, estimate.amount)
  return most
}

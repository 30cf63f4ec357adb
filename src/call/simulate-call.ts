import type { ServedProtocol } from '@sluice/wire/protocols'
import type { Caller } from '../accounts/authentication/caller.ts'
import { findChargedBalances } from '../accounts/ledger/find-charged-balances.ts'
import type { Ledger } from '../accounts/ledger/ledger.ts'
import { affordableAmount } from '../accounts/ledger/charged-balances.ts'
import { refusalOfHold, Unaffordable } from '../accounts/ledger/quota-refusal.ts'
import { decimalText } from '../domain/decimal.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'
import {
  simulatedRefusal,
  type SimulatedCall,
  type SimulatedStep,
  type Simulation,
  type SkipReason,
} from '../domain/simulation.ts'
import type { ChannelHealth } from '../upstreams/channel-health.ts'
import type { ChannelLoad } from '../upstreams/channel-load.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { MissingModels } from '../upstreams/missing-models.ts'
import type { CallLimits } from './call-limits.ts'
import type { ClientDialects } from './dialects/client-dialects.ts'
import type { Dialect } from './dialects/dialect.ts'
import { requireAllowedModel } from './key-permissions.ts'
import { planCall, CallRates } from './plan.ts'
import type { ParsedRequest, Plan } from './request-stages.ts'
import { type CalledEndpoint, hasEndpoint, type ResolvedModel, Routing, serves } from './routing.ts'
import { withDisplayedAmounts } from './refusal-amounts.ts'

/** Reasons for which a channel is skipped only while another channel is available. */
const SOFT: ReadonlySet<SkipReason> = new Set<SkipReason>(['resting', 'drained', 'ended', 'no_key'])

export interface SimulationServices {
  readonly settings: () => Settings
  readonly ledger: Pick<Ledger, 'accounts'>
  readonly load: ChannelLoad
  readonly health: ChannelHealth
  readonly keyRings: KeyRings
  readonly missing: MissingModels
  readonly ends: ModelRetirements
  readonly limits: CallLimits
}

/**
 * Determines where a call would go, by the same rules as `Relay` and `Attempts`. Nothing is sent, reserved,
 * counted or logged. `docs/administration.md: Routing`.
 */
export async function simulateCall(
  services: SimulationServices,
  dialects: ClientDialects,
  caller: Caller,
  call: SimulatedCall,
): Promise<Simulation> {
  const all = services.settings()
  const settings = { ...all, channels: all.channels.filter((channel) => !call.without.has(channel)) }
  const { model: name, protocol } = call
  // `dialects` has no entry for gemini, because gemini calls name their model in the path.
  const byProtocol: Partial<Record<ServedProtocol, Dialect>> = dialects
  const dialect = byProtocol[protocol] ?? { ...dialects.chat, name: protocol }
  let group = caller.token.group || caller.user.group
  let hold = 0
  let refusal: Simulation['refusal'] = null
  let resolutions: readonly ResolvedModel[] = []
  try {
    if (call.isKey) {
      services.limits.requireSlot(caller)
      requireAllowedModel(caller.token, name, name)
    }
    const routing = new Routing(services.load, services.ends)
    const found = routing.resolve(settings, caller, { name, stream: false }, dialect, true).resolutions
    // Models for requests that are too long or filtered are in no step of the route.
    resolutions = found.filter(({ reason }) => reason === undefined)
    group = resolutions[0]?.group.name ?? group
    const request = requestOf(call)
    const requestedModel = settings.models.get(name)
    if (call.isKey) await services.limits.requireEntry(settings, caller, requestedModel)
    const common = {
      dialect,
      body: Buffer.alloc(0),
      fields: undefined,
      takeMemory: () => {},
      settings,
      requestedModel,
    }
    const plans = await planCall(common, request, found, new CallRates())
    hold = Math.max(...plans.map(({ estimate }) => estimate.amount))
    if (call.isKey) await requireAffordable(services, caller, plans, hold)
  } catch (error) {
    refusal = simulatedRefusal(
      error instanceof Unaffordable ? withDisplayedAmounts(error, all.options) : error,
    )
  }
  const ratio = settings.groups.get(group)?.ratio
  return {
    refusal,
    group,
    ratio: ratio ? decimalText(ratio) : '1',
    hold,
    route: routeOf(services, all, call, dialect, group, resolutions),
  }
}

function requestOf({
  model,
  promptTokens,
  maxTokens,
}: Pick<SimulatedCall, 'model' | 'promptTokens' | 'maxTokens'>): ParsedRequest {
  return {
    model,
    stream: false,
    maxTokens,
    promptBound: promptTokens,
    forModel: (name) => requestOf({ model: name, promptTokens, maxTokens }),
    forChannels: (channels) =>
      channels.map((channel) => ({
        channel,
        outputMaximum: maxTokens,
        choices: 1,
        prepare() {
          throw new Error('a simulated call is not sent')
        },
      })),
  }
}

async function requireAffordable(
  { ledger }: SimulationServices,
  caller: Caller,
  plans: readonly Plan[],
  amount: number,
): Promise<void> {
  const groups = plans.map(({ group }) => group)
  const found = await findChargedBalances(ledger.accounts, { ...caller, groups, startedMs: Date.now() })
  // A process that shares its quota with others knows only what it has borrowed.
  const payer = await ledger.accounts.ensureAffordable(found, amount)
  if (amount > affordableAmount(payer.account, payer.budgets)) throw refusalOfHold(payer, amount, Date.now())
}

function routeOf(
  services: SimulationServices,
  settings: Settings,
  call: SimulatedCall,
  called: CalledEndpoint,
  group: string,
  resolutions: readonly ResolvedModel[],
): readonly SimulatedStep[] {
  const fallbacks = settings.models.get(call.model).fallback
  const models = [...new Set([call.model, ...resolutions.map(({ name }) => name), ...fallbacks])]
  const nowMs = performance.now()
  const stated = models.map((name) => {
    const within = resolutions.find((one) => one.name === name)?.group.name ?? group
    const serving = [...settings.channels, ...call.disabled].filter(
      (channel) => channel.groups.includes(within) && serves(channel, name, name),
    )
    const channels = serving.map((channel) => ({
      channel,
      native: channel.protocol.includes(called.name),
      whyNot: whyNotOf(services, call, called, { channel, model: name, nowMs }),
    }))
    return { name, channels }
  })
  const isFree = ({ whyNot }: { readonly whyNot: SkipReason }): boolean => whyNot === null
  // If every channel of every model is skipped, the skipped ones are tried.
  const hasFree = stated.some(({ channels }) => channels.some(isFree))
  return stated.flatMap(({ name, channels }) => {
    const { balance } = settings.models.get(name)
    const measure = services.load.measure(balance, { model: name, stream: false }, () => 1)
    const priorities = [...new Set(channels.map(({ channel }) => channel.priority))].sort((a, b) => b - a)
    return priorities.map((priority) => {
      const ofStep = channels.filter(({ channel }) => channel.priority === priority)
      const taken = ofStep.filter((one) => isFree(one) || (!hasFree && SOFT.has(one.whyNot)))
      const shares = sharesOf(taken, measure)
      return {
        model: name,
        fallback: name !== call.model,
        priority,
        channels: ofStep
          .map((one) => ({ ...one, share: shares.get(one.channel) ?? 0 }))
          .toSorted((a, b) => b.share - a.share || Number(b.native) - Number(a.native)),
      }
    })
  })
}

function whyNotOf(
  { settings, health, keyRings, missing, ends, limits }: SimulationServices,
  { without, disabled }: SimulatedCall,
  called: CalledEndpoint,
  { channel, model, nowMs }: { readonly channel: Channel; readonly model: string; readonly nowMs: number },
): SkipReason {
  if (disabled.includes(channel)) return 'disabled'
  if (without.has(channel)) return 'without'
  if (!hasEndpoint(channel, called)) return 'protocol'
  if (limits.waitMs(channel) > 0) return 'rate_limited'
  if (channel.isDrained) return 'drained'
  if (ends.of(settings()).hasEnded(channel, model, Date.now())) return 'ended'
  if (health.isOpen(channel, nowMs) || missing.isMissing(channel, model, nowMs)) return 'resting'
  const upstreamModel = channel.model_mapping.get(model) ?? model
  return keyRings
    .keysOf(channel)
    .every(({ value }) => keyRings.rests.isResting(channel.name, value, upstreamModel, nowMs))
    ? 'no_key'
    : null
}

/**
 * Share of calls (0 to 1) for which the channel is chosen by weight although `balance` is `load` or
 * `latency`.
 */
const BY_WEIGHT = 0.1

/**
 * The expected share of first attempts of each channel (0 to 1), by the order of `Routing`: channels with the
 * client's protocol first, channels of weight 0 last.
 */
function sharesOf(
  channels: readonly { readonly channel: Channel; readonly native: boolean }[],
  measure: ((channel: Channel) => number) | undefined,
): ReadonlyMap<Channel, number> {
  const isNative = channels.some(({ native }) => native)
  const ofKind = channels.filter(({ native }) => native === isNative).map(({ channel }) => channel)
  const weighed = ofKind.filter(({ weight }) => weight > 0)
  // If all channels have weight 0, each has the same share.
  if (weighed.length === 0) return new Map(ofKind.map((channel) => [channel, 1 / ofKind.length]))
  const byWeight = weightShares(weighed)
  if (!measure) return byWeight
  const least = Math.min(...weighed.map(measure))
  const measured = weightShares(weighed.filter((channel) => measure(channel) === least))
  return new Map(
    weighed.map((channel) => [
      channel,
      BY_WEIGHT * (byWeight.get(channel) ?? 0) + (1 - BY_WEIGHT) * (measured.get(channel) ?? 0),
    ]),
  )
}

function weightShares(channels: readonly Channel[]): ReadonlyMap<Channel, number> {
  const sum = channels.reduce((total, { weight }) => total + weight, 0)
  return new Map(channels.map((channel) => [channel, channel.weight / sum]))
}

import type { AdvisorTokens, ToolKind, ToolUse } from '@sluice/wire/tool-use'
import { addUsage, NO_USAGE, promptTokens, type Usage } from '@sluice/wire/usage'
import { MEASURED_UNITS } from '../domain/price.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import { type KnownTool, toolKindAtVendor } from '../domain/tool-price.ts'
import type { RunningCall } from './running-call.ts'
import { contextOf } from './held-tools.ts'
import type { ChargeBasis } from './price-usage.ts'
import type { AttemptTarget, ChannelPlan } from './request-stages.ts'
import { toolPricingAt, toolsForChannel } from './tool-pricing.ts'

/** Factor by which a report may exceed what is possible, before it is not believed. */
const TOLERANCE = 10
/** Maximum plausible number of tokens for a model whose context length is not known. */
const MAX_TOKENS = 10_000_000
/** Output maximum that is assumed for a model; the price data state none. */
const ASSUMED_OUTPUT = 65_536
/** Maximum plausible uses of a tool if the request does not limit them. */
const MAX_USES = 1_000

/**
 * Whether a response states more tokens, other units, or uses of a tool than are plausible. Nothing of such a
 * report is believed: `docs/ledger.md: Implausible usage`.
 */
export function isImplausible(
  call: Pick<RunningCall, 'plan'>,
  target: AttemptTarget,
  { reported, tools: shown }: Pick<ChargeBasis, 'reported' | 'tools'>,
): boolean {
  const reportedUses = reported?.tools ?? []
  if (reported && hasImplausibleTokens(call, target, reported, reportedUses)) return true
  if (reported && hasImplausibleUnits(call, reported)) return true
  if (reported?.advisors && hasImplausibleAdvisors(call, target, reported.advisors)) return true
  const searches = reported?.webSearches ?? 0
  if (searches === 0 && reportedUses.length === 0 && shown.length === 0) return false
  const counted: readonly ToolUse[] = [...reportedUses, { kind: 'web_search', count: searches }]
  return [counted, shown].some((uses) => hasImplausibleUses(call, target, uses))
}

/** Whether a usage has more tokens than are plausible for the model, and for what the call has held. */
export function hasImplausibleTokens(
  { plan }: Pick<RunningCall, 'plan'>,
  target: Pick<AttemptTarget, 'plan'>,
  usage: Usage,
  uses: readonly ToolUse[] = [],
): boolean {
  const tokens = Math.max(tokensOf(usage), ...uses.map(tokensOfImages))
  // What was held is possible, for a request that allows many uses of tools or has many texts.
  return tokens > plan.estimate.heldTokens && tokens > maxTokens([target.plan], plan.model, plan.settings)
}

/** Whether a usage has more units other than tokens, such as search units, than its request can cause. */
export function hasImplausibleUnits({ plan }: Pick<RunningCall, 'plan'>, usage: Usage): boolean {
  const bounds = plan.request.measured?.bounds
  if (!bounds) return false
  return MEASURED_UNITS.some(({ count }) => usage[count] > TOLERANCE * (bounds[count] ?? usage[count]))
}

/** Maximum plausible number of tokens of a response. */
export function maxTokens(
  channels: readonly Pick<ChannelPlan, 'channel'>[],
  model: Pick<Model, 'name' | 'contextTokens' | 'isContextKnown'>,
  settings: Pick<Settings, 'models'>,
): number {
  const { tokens, isCertain } = contextOf(channels, model, settings)
  return isCertain ? TOLERANCE * (tokens + ASSUMED_OUTPUT) : MAX_TOKENS
}

/** Whether a response in the background, whose request is not known any more, states an implausible usage. */
export function isImplausibleOutcome(usage: Usage, uses: readonly ToolUse[], most: number): boolean {
  return (
    Math.max(tokensOf(usage), ...uses.map(tokensOfImages)) > most ||
    [usage.webSearches, ...uses.map(({ count }) => count)].some((count) => count > MAX_USES)
  )
}

function tokensOf(usage: Usage): number {
  return promptTokens(usage) + usage.output
}

function tokensOfImages({ tokens }: ToolUse): number {
  return tokens ? tokens.text + tokens.image + tokens.output : 0
}

/** Whether other models that the provider asked have too many tokens together, or were asked too often. */
function hasImplausibleAdvisors(
  call: Pick<RunningCall, 'plan'>,
  target: AttemptTarget,
  advisors: readonly AdvisorTokens[],
): boolean {
  const sum = advisors.reduce((before, { usage }) => addUsage(before, usage), NO_USAGE)
  const most = maxUses(call, target, ({ advisor }) => advisor !== undefined)
  return advisors.length > most || hasImplausibleTokens(call, target, sum)
}

function hasImplausibleUses(
  call: Pick<RunningCall, 'plan'>,
  target: AttemptTarget,
  uses: readonly ToolUse[],
): boolean {
  const pricing = toolPricingAt(call, target)
  const counts = new Map<ToolKind, number>()
  for (const use of uses) {
    const kind = toolKindAtVendor(use.kind, pricing)
    counts.set(kind, (counts.get(kind) ?? 0) + use.count)
  }
  return [...counts].some(([used, count]) => {
    const isOf = ({ kind }: KnownTool): boolean =>
      kind !== undefined && toolKindAtVendor(kind, pricing) === used
    return count > maxUses(call, target, isOf)
  })
}

/** Ten times the uses that the request states for the tools of a kind, or 1,000 if it states none. */
function maxUses(
  { plan: { settings, rate } }: Pick<RunningCall, 'plan'>,
  { channel, plan: { tools } }: AttemptTarget,
  isOf: (tool: KnownTool) => boolean,
): number {
  if (!tools) return MAX_USES
  const { known } = toolsForChannel(settings, rate, channel, tools)
  const stated = known.filter(isOf).map(({ maxUses: own }) => own ?? tools.maxCalls)
  if (stated.length === 0 || stated.includes(undefined)) return MAX_USES
  return TOLERANCE * stated.reduce<number>((sum, one) => sum + (one ?? 0), 0)
}

import type { ReportedUsage } from '@sluice/wire/reported-usage'
import type { OfferedTool, ToolUse } from '@sluice/wire/tool-use'
import type { HourlyReports, UnpricedTool } from '../alerts/hourly-reports.ts'
import { pricedAdvisors } from '../domain/advisor-price.ts'
import { FREE_PRICE, type ChargeRate, type Price } from '../domain/price.ts'
import { UPSTREAM_PROTOCOLS } from '../domain/protocols.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'
import {
  type KnownTool,
  knownTool,
  pricedTools,
  type ToolPricingInputs,
  toolVendor,
} from '../domain/tool-price.ts'
import type { PricedTool } from '../domain/tool-use.ts'
import { GatewayError } from '../errors.ts'
import type { RunningCall } from './running-call.ts'
import type { PricingInputs } from './price-usage.ts'
import type { ChannelPlan, ChannelTools, AttemptTarget } from './request-stages.ts'

/** Maximum characters of a tool's type in messages and alerts. */
const MAX_TYPE_LENGTH = 64

/**
 * Collects what determines the prices of tools at one upstream. `channel` is undefined if the channel was
 * removed.
 */
export function toolPricingInputs(
  { models }: Pick<Settings, 'models'>,
  { price }: Pick<ChargeRate, 'price'>,
  channel: Pick<Channel, 'provider' | 'base_url'> | undefined,
  { dialect, model, offered }: Pick<ToolPricingInputs, 'dialect' | 'model' | 'offered'>,
): ToolPricingInputs {
  return {
    stated: price.tools,
    vendor: channel ? toolVendor(channel, dialect) : UPSTREAM_PROTOCOLS[dialect].vendor,
    dialect,
    model,
    offered,
    priceOf: (painter) => models.get(painter).price,
  }
}

/**
 * The tools in a request to a channel that may cost something, and what determines their prices. Some tools
 * are not sent unless the channel allows them.
 */
export function toolsForChannel(
  settings: Settings,
  rate: ChargeRate,
  channel: Channel,
  { dialect, model, tools: offered }: ChannelTools,
): { readonly pricing: ToolPricingInputs; readonly known: readonly KnownTool[] } {
  const pricing = toolPricingInputs(settings, rate, channel, { dialect, model, offered })
  const sent = sentTools(settings, channel, offered)
  return { pricing, known: sent.flatMap((tool) => withModelPrice(knownTool(tool, pricing), settings)) }
}

/** Those of the offered tools that the channel is sent. */
function sentTools(
  { options }: Pick<Settings, 'options'>,
  { pass_through: isOpen, allow }: Channel,
  offered: readonly OfferedTool[],
): readonly OfferedTool[] {
  if (isOpen || options.pass_through) return offered
  return offered.filter(({ allowedBy }) => allowedBy === undefined || allow.has(allowedBy))
}

function withModelPrice(tool: KnownTool | undefined, { models }: Settings): readonly KnownTool[] {
  if (!tool) return []
  return tool.advisor && models.get(tool.advisor.model).price ? [{ ...tool, isPricedByModel: true }] : [tool]
}

/** Types of the tools that have no price, each once. Characters that must not be shown are replaced. */
export function unpricedToolTypes(known: readonly KnownTool[]): readonly string[] {
  const types = known
    .filter(({ kind, isPricedByModel }) => kind === undefined && !isPricedByModel)
    .map(({ type }) => type)
  return [...new Set(types.map((type) => type.slice(0, MAX_TYPE_LENGTH).replaceAll(/[^\w.:-]/g, '?')))]
}

/** Refuses a request with a tool that has no price, if the operator has configured that. */
export function refuseUnpricedTools(
  settings: Settings,
  rate: ChargeRate,
  channels: readonly ChannelPlan[],
): void {
  if (settings.options.unknown_tools !== 'refuse') return
  for (const { channel, tools } of channels) {
    const [type] = tools ? unpricedToolTypes(toolsForChannel(settings, rate, channel, tools).known) : []
    if (type !== undefined)
      throw new GatewayError('tool_not_priced', `the tool ${type} has no price here, and cannot be offered`)
  }
}

const NONE: readonly OfferedTool[] = []

/** Collects what determines the prices of the provider's tools for a call. */
export function toolPricingAt(
  call: Pick<RunningCall, 'plan'>,
  { channel, request, plan }: AttemptTarget,
): ToolPricingInputs {
  const { settings, rate } = call.plan
  const { protocol: dialect, upstreamModel: model } = request
  return toolPricingInputs(settings, rate, channel, { dialect, model, offered: plan.tools?.tools ?? NONE })
}

/** Collects everything besides the response that determines its charge. */
export function pricingInputsAt(call: RunningCall, target: AttemptTarget): PricingInputs {
  const { rate, request, settings } = call.plan
  return {
    rate,
    media: () => settings.models.get(request.model).price ?? FREE_PRICE,
    countPrompt: () => call.countChargedPrompt(),
    count: call.services.count,
    unitsOf: request.measured?.searchUnits,
    shown: (uses) => shownBy(call, target, uses),
    priceTools: (searches, uses) => pricedTools(searches, uses, toolPricingAt(call, target)),
    priceAdvisors: (advisors) => pricedAdvisors(advisors, advisorPrices(call, target)),
  }
}

/**
 * Returns the price of another model that a response reports. One without a price costs as much as the model that
 * the request offered for the tool, which the provider may report by another name.
 */
function advisorPrices(
  { plan: { settings } }: Pick<RunningCall, 'plan'>,
  { plan: { tools } }: Pick<AttemptTarget, 'plan'>,
): (model: string) => Price | undefined {
  const offered = (tools?.tools ?? NONE).flatMap(({ advisor }) => advisor?.model ?? [])
  return (reported) =>
    [reported, ...offered].map((model) => settings.models.get(model).price).find((price) => price)
}

/** Prices of the tool uses that a response has shown so far. */
export function pricesOfToolUses(
  call: Pick<RunningCall, 'plan'>,
  target: AttemptTarget,
  uses: readonly ToolUse[],
): readonly PricedTool[] {
  const shown = shownBy(call, target, uses)
  return shown.length === 0 ? [] : pricedTools(0, shown, toolPricingAt(call, target))
}

/** The `tool` of the alert `price.incomplete` for an advisor model without a price. */
const UNPRICED_ADVISOR = 'advisor_message'
/** The same for an answer of another model, which is charged at the price of the call's model. */
const FALLBACK = 'fallback_message'

/**
 * Records the tools of a request, and the models that its provider asked, that have no price, and whether another
 * model answered; returns whether there are any.
 */
export function reportUnpricedTools(
  call: Pick<RunningCall, 'plan'>,
  target: Pick<AttemptTarget, 'channel' | 'plan'>,
  { advisors, isFallback }: Pick<ReportedUsage, 'advisors' | 'isFallback'>,
  unpriced: Pick<HourlyReports<UnpricedTool>, 'note'>,
): boolean {
  const { channel, plan } = target
  if (!plan.tools && !advisors && !isFallback) return false
  const { rate, request, settings } = call.plan
  const { known } = plan.tools ? toolsForChannel(settings, rate, channel, plan.tools) : { known: [] }
  const priceOf = advisorPrices(call, target)
  const isAdvised = advisors?.some(({ model }) => !priceOf(model))
  const types = [
    ...unpricedToolTypes(known),
    ...(isAdvised ? [UNPRICED_ADVISOR] : []),
    ...(isFallback ? [FALLBACK] : []),
  ]
  for (const tool of types) unpriced.note({ model: request.model, channel: channel.name, tool })
  return types.length > 0
}

// Citations alone may show that the provider searched. Such a search counts only if the request offered tools
// that the provider runs.
function shownBy(
  { plan: { settings } }: Pick<RunningCall, 'plan'>,
  { channel, plan: { tools } }: AttemptTarget,
  uses: readonly ToolUse[],
): readonly ToolUse[] {
  if (uses.length === 0) return uses
  const isOffered = tools !== undefined && sentTools(settings, channel, tools.tools).length > 0
  return uses.filter(({ isCited }) => !isCited || isOffered)
}

import type { Channel } from '../domain/records/channel.ts'
import type { Rate } from '../domain/price.ts'
import { UPSTREAM_PROTOCOLS } from '../domain/protocols.ts'
import type { Settings } from '../domain/settings.ts'
import { type KnownTool, knownTool, type ToolTerms, toolVendor } from '../domain/tool-price.ts'
import { GatewayError } from '../errors.ts'
import type { ChannelPlan, ChannelTools } from './request-stages.ts'

/** Maximum characters of a tool's type in messages and alerts. */
const MAX_TYPE_LENGTH = 64

/** Terms of the tools at one upstream; `channel` is undefined if it no longer exists. */
export function toolTerms(
  { models }: Pick<Settings, 'models'>,
  { price }: Pick<Rate, 'price'>,
  channel: Pick<Channel, 'provider' | 'base_url'> | undefined,
  { dialect, model, offered }: Pick<ToolTerms, 'dialect' | 'model' | 'offered'>,
): ToolTerms {
  return {
    stated: price.tools,
    vendor: channel ? toolVendor(channel, dialect) : UPSTREAM_PROTOCOLS[dialect].vendor,
    dialect,
    model,
    offered,
    priceOf: (painter) => models.get(painter).price,
  }
}

/** The tools of a request at its channel that may cost something, and the terms of their prices. */
export function toolsAt(
  settings: Settings,
  rate: Rate,
  channel: Channel,
  { dialect, model, tools: offered }: ChannelTools,
): { readonly terms: ToolTerms; readonly known: readonly KnownTool[] } {
  const terms = toolTerms(settings, rate, channel, { dialect, model, offered })
  return { terms, known: offered.flatMap((tool) => knownTool(tool, terms) ?? []) }
}

/** Types of the tools without a price, without duplicates and without characters that must not be shown. */
export function unlistedTypes(known: readonly KnownTool[]): readonly string[] {
  const types = known.filter(({ kind }) => kind === undefined).map(({ type }) => type)
  return [...new Set(types.map((type) => type.slice(0, MAX_TYPE_LENGTH).replaceAll(/[^\w.:-]/g, '?')))]
}

/** Refuses a request with a tool that has no price, if the operator has configured that. */
export function refuseUnlisted(settings: Settings, rate: Rate, channels: readonly ChannelPlan[]): void {
  if (settings.options.unknown_tools !== 'refuse') return
  for (const { channel, tools } of channels) {
    const [type] = tools ? unlistedTypes(toolsAt(settings, rate, channel, tools).known) : []
    if (type !== undefined)
      throw new GatewayError('tool_not_priced', `the tool ${type} has no price here, and cannot be offered`)
  }
}

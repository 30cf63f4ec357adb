import { MAX_USES, type OfferedTool, type ToolKind } from '@sluice/wire/tool-use'
import { heldAdvisor } from '../domain/advisor-price.ts'
import { sumOfCostLines } from '../domain/charge.ts'
import { isGreaterDecimal } from '../domain/decimal.ts'
import type { ChargeRate } from '../domain/price.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import { type KnownTool, priceOfToolUse } from '../domain/tool-price.ts'
import type { PricedTool } from '../domain/tool-use.ts'
import type { ChannelPlan } from './request-stages.ts'
import { toolsForChannel } from './tool-pricing.ts'

/** Number of tool uses for which quota is reserved if the request does not limit them. */
const UNSTATED_USES = 4

/** What a call reserves for the tools that its provider may run: `docs/ledger.md: Holds`. */
export interface HeldTools {
  /** The uses with their prices. */
  readonly priced: readonly PricedTool[]
  /** Number of uses whose results the provider adds to the prompt; 0 if there are no such tools. */
  readonly readings: number
  /** Maximum tokens of the results of one use; infinite if a tool does not limit them. */
  readonly resultTokens: number
}

/** The hold of a call whose provider runs no tools. */
export const NO_HELD_TOOLS: HeldTools = { priced: [], readings: 0, resultTokens: 0 }

/** Whether the provider adds the results of a tool to the prompt. An unknown tool may do so. */
export function fillsPrompt(kind: ToolKind | undefined): boolean {
  return kind !== 'image_generation'
}

/**
 * The tool uses for which quota is reserved, by the most expensive channel. For a whole response, the maximum
 * that the request allows. If the response is `watched`, because more quota is reserved while it is generated,
 * one use of each tool, and one whose results fill the prompt.
 */
export function toolsToHold(
  channels: readonly ChannelPlan[],
  isWatched: boolean,
  rate: ChargeRate,
  settings: Settings,
): HeldTools {
  let held = NO_HELD_TOOLS
  for (const plan of channels) {
    if (!plan.tools) continue
    const { priced, readings, resultTokens } = toolsToHoldAt(plan, isWatched, rate, settings)
    held = {
      priced: isGreaterDecimal(sumOfCostLines(priced), sumOfCostLines(held.priced)) ? priced : held.priced,
      readings: Math.max(readings, held.readings),
      resultTokens: Math.max(resultTokens, held.resultTokens),
    }
  }
  return held
}

function toolsToHoldAt(
  { channel, tools: offered }: ChannelPlan,
  isWatched: boolean,
  rate: ChargeRate,
  settings: Settings,
): HeldTools {
  if (!offered) return NO_HELD_TOOLS
  const { maxCalls } = offered
  const mostOf = ({ maxUses }: OfferedTool): number =>
    Math.min(maxUses ?? maxCalls ?? UNSTATED_USES, MAX_USES)
  const { pricing, known } = toolsForChannel(settings, rate, channel, offered)
  const usesOf = (tool: OfferedTool): number => (isWatched ? 1 : mostOf(tool))
  const priced = known.flatMap((tool): PricedTool[] => {
    const { kind, form } = tool
    // Uses of other models are not seen in a stream, so all of them are held at its start.
    const advised = heldAdvisor(tool, mostOf(tool), (name) => settings.models.get(name))
    if (advised) return [...advised]
    return kind ? [{ kind, count: usesOf(tool), price: priceOfToolUse({ kind, form }, pricing) }] : []
  })
  const reading = known.filter(({ kind }) => fillsPrompt(kind))
  const readings = reading.reduce((sum, tool) => sum + usesOf(tool), 0)
  const resultTokens = Math.max(0, ...reading.map(resultTokensOf))
  if (isWatched) return { priced, readings: Math.min(readings, 1), resultTokens }
  if (maxCalls === undefined) return { priced, readings, resultTokens }
  return { priced: withinCalls(priced, maxCalls), readings: Math.min(readings, maxCalls), resultTokens }
}

function resultTokensOf({ maxResultTokens }: KnownTool): number {
  return maxResultTokens ?? Number.POSITIVE_INFINITY
}

// The maximum of tool calls applies to all tools together, so the most expensive tools are assumed to use it
// up.
function withinCalls(uses: readonly PricedTool[], maxCalls: number): readonly PricedTool[] {
  let left = maxCalls
  return uses
    .toSorted((one, other) => (isGreaterDecimal(one.price, other.price) ? -1 : 1))
    .map((use) => {
      const count = Math.min(use.count, left)
      left -= count
      return { ...use, count }
    })
}

/**
 * Tokens that a provider reads in addition to the prompt if the results of tools fill it `readings` times. For
 * each of these uses it reads everything again: the prompt, the output so far, and the results of all uses.
 * That is the model's context at most.
 */
export function tokensOfReadings(
  readings: number,
  resultTokens: number,
  context: number,
  others: number,
): number {
  return readings === 0 ? 0 : readings * Math.min(context, others + readings * resultTokens)
}

/**
 * Context length in tokens with which any of the channels may serve a model. `isCertain` is set if it is known
 * for each of them, so that no prompt can have more tokens.
 */
export function contextOf(
  channels: readonly Pick<ChannelPlan, 'channel'>[],
  model: Pick<Model, 'name' | 'contextTokens' | 'isContextKnown'>,
  { models }: Pick<Settings, 'models'>,
): { readonly tokens: number; readonly isCertain: boolean } {
  let tokens = 0
  let isCertain = true
  for (const { channel } of channels) {
    const mapped = channel.model_mapping.get(model.name)
    const upstream = mapped === undefined ? undefined : models.get(mapped)
    const known = upstream?.isContextKnown ? upstream.contextTokens : 0
    if (known === 0 && !model.isContextKnown) isCertain = false
    tokens = Math.max(tokens, known, model.isContextKnown || known === 0 ? model.contextTokens : 0)
  }
  return { tokens, isCertain }
}

import { maxCharge, sumOfLines } from '../domain/charge.ts'
import { isMore } from '../domain/decimal.ts'
import { type Endpoint, ENDPOINTS } from '../domain/endpoints.ts'
import type { Rate } from '../domain/price.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import { priceOfUse } from '../domain/tool-price.ts'
import type { PricedTool } from '../domain/tool-use.ts'
import { EXPECTED_BYTES_PER_TOKEN } from '@sluice/wire/prompt-tokens'
import type { ChannelRequest, RelayedRequest } from './dialects/dialect.ts'
import { type EditedBounds, editedBounds } from './bounds-after-edits.ts'
import { toolsAt } from './tool-terms.ts'

/** Limits that the output of a call is expected to respect. */
export interface OutputBudget {
  /** Output tokens that the hold covers at first. */
  readonly tokens: number
  /** Whether a maximum is sent to every channel and the channels are expected to respect it. */
  readonly named: boolean
  /** Output tokens by which a hold grows. */
  readonly slice: number
  /** Computes the maximum cost of a slice in quota units. Only streams need it. */
  readonly sliceQuota: () => number
}

/** Estimated size and cost of a call. */
export interface Estimate {
  /** Maximum cost of the call in quota units. */
  readonly amount: number
  readonly budget: OutputBudget
  /** Expected tokens of the prompt, except for parts of unknown size. */
  readonly promptTokens: number
  /** Tokens assumed for the parts of unknown size. */
  readonly unknownTokens: number
}

/** Estimate of a stream that is free. */
export const UNBOUNDED: Estimate = {
  amount: 0,
  budget: { tokens: Number.MAX_SAFE_INTEGER, named: false, slice: 1, sliceQuota: () => 0 },
  promptTokens: 0,
  unknownTokens: 0,
}

/**
 * Estimates a call of a model at these prices, by what will be requested from the channels that may serve it.
 */
export function estimate(
  endpoint: Endpoint,
  request: RelayedRequest,
  channelRequests: readonly ChannelRequest[],
  rate: Rate,
  settings: Settings,
  { contextTokens: largest }: Pick<Model, 'contextTokens'>,
): Estimate {
  const { hold_tokens: holdTokens } = settings.options
  const tools = heldTools(channelRequests, request.stream, rate, settings)
  const bounds = channelRequests.map(boundsOf(endpoint))
  const { tokens, named, addedPrompt } = callBounds(bounds, channelRequests, holdTokens)
  const context = request.contextTokens ?? 0
  // However many parts are referred to, together they fit into the model's context.
  const unknown = request.namesPrompt ? largest : 0
  const max = (output: number): number =>
    maxCharge(rate, {
      ...request.measuredBounds,
      prompt: request.promptBound + addedPrompt + context + unknown,
      output,
      tools,
    })
  const amount = max(tokens)
  return {
    amount,
    budget: {
      tokens,
      named,
      slice: holdTokens,
      sliceQuota: () => max(tokens + holdTokens) - amount,
    },
    promptTokens: Math.ceil((request.promptBound + addedPrompt) / EXPECTED_BYTES_PER_TOKEN) + context,
    unknownTokens: unknown,
  }
}

/**
 * The maximum of output tokens that is sent to a channel, for all choices together; undefined if there is
 * none.
 */
export function outputMaximum(endpoint: Endpoint, request: ChannelRequest): number | undefined {
  return boundsOf(endpoint)(request).output
}

function boundsOf(endpoint: Endpoint): (request: ChannelRequest) => EditedBounds {
  return ENDPOINTS[endpoint].isEdited ? editedBounds : uneditedBounds
}

/**
 * The maximum that will be requested from any of the channels, and whether a maximum is sent to each of them.
 */
function callBounds(
  bounds: readonly EditedBounds[],
  requests: readonly ChannelRequest[],
  holdTokens: number,
): Pick<OutputBudget, 'tokens' | 'named'> & { readonly addedPrompt: number } {
  let tokens = 0
  let named = true
  let addedPrompt = 0
  for (const [index, { output, named: isNamed, prompt }] of bounds.entries()) {
    named &&= isNamed
    const unnamed = isNamed ? 0 : holdTokens * (requests[index]?.choices ?? 1)
    tokens = Math.max(tokens, output ?? 0, unnamed)
    addedPrompt = Math.max(addedPrompt, prompt)
  }
  return { tokens, named, addedPrompt }
}

function uneditedBounds({ outputMaximum, choices }: ChannelRequest): EditedBounds {
  const named = outputMaximum !== undefined
  return { prompt: 0, output: named ? outputMaximum * choices : undefined, named }
}

/** Number of tool uses that a hold covers if the request does not limit them. */
const UNSTATED_USES = 4
const NONE: readonly PricedTool[] = []

/**
 * The most expensive tool uses that a hold covers at any of the channels. For a whole response that is the
 * maximum that the request allows; for a stream one use of each tool, because its hold grows.
 */
function heldTools(
  requests: readonly ChannelRequest[],
  stream: boolean,
  rate: Rate,
  settings: Settings,
): readonly PricedTool[] {
  let dearest = NONE
  for (const request of requests) {
    if (!request.tools) continue
    const held = heldAt(request, stream, rate, settings)
    if (isMore(sumOfLines(held), sumOfLines(dearest))) dearest = held
  }
  return dearest
}

function heldAt(
  { channel, tools: offered }: ChannelRequest,
  stream: boolean,
  rate: Rate,
  settings: Settings,
): readonly PricedTool[] {
  if (!offered) return NONE
  const { terms, known } = toolsAt(settings, rate, channel, offered)
  const uses = known.flatMap(({ kind, form, maxUses }): PricedTool[] => {
    if (!kind) return []
    const count = stream ? 1 : (maxUses ?? offered.maxCalls ?? UNSTATED_USES)
    return [{ kind, count, price: priceOfUse({ kind, form }, terms) }]
  })
  if (stream || offered.maxCalls === undefined) return uses
  // The maximum applies to all tools together; the most expensive ones may use all of it.
  let left = offered.maxCalls
  return uses
    .toSorted((one, other) => (isMore(one.price, other.price) ? -1 : 1))
    .map((use) => {
      const count = Math.min(use.count, left)
      left -= count
      return { ...use, count }
    })
}

import type { Channel } from '../domain/channel.ts'
import { mostItCanCost, type Rate } from '../domain/price.ts'
import type { Model, Settings } from '../domain/settings.ts'
import type { OutputBudget } from './call.ts'
import type { Resolution } from './resolve.ts'
import type { RelayedRequest } from './roads/road.ts'

/** Web searches that one call may make, at most, by what is asked for. */
const SEARCHES_HELD = 10
/** A prompt's expected tokens, from the bound in bytes. */
const EXPECTED_BYTES_PER_TOKEN = 4

/** What a call may come to. */
export interface Estimate {
  /** The most that it can cost, in quota units. */
  readonly amount: number
  readonly budget: OutputBudget
  /** As many tokens as the prompt is expected to have. */
  readonly promptTokens: number
}

/** Estimates a call at these prices, before it is sent. */
export function estimate(
  request: RelayedRequest,
  { channels, model }: Pick<Resolution, 'channels' | 'model'>,
  rate: Rate,
  { options: { holdTokens } }: Settings,
): Estimate {
  const searches = request.webSearch ? SEARCHES_HELD : 0
  const maximum = outputMaximum(request, channels, model)
  const tokens = (maximum ?? holdTokens) * request.n
  const most = (output: number): number => mostItCanCost(rate, request.promptBound, output, searches)
  const amount = most(tokens)
  return {
    amount,
    budget: {
      tokens,
      named: maximum !== undefined,
      slice: holdTokens,
      sliceQuota: most(tokens + holdTokens) - amount,
    },
    promptTokens: Math.ceil(request.promptBound / EXPECTED_BYTES_PER_TOKEN),
  }
}

/** The most that any of the channels will be told; undefined where one is told none. */
function outputMaximum(
  request: RelayedRequest,
  channels: readonly Channel[],
  model: Model,
): number | undefined {
  const maxima = channels.map((channel) => request.outputMaximum(channel, model))
  return maxima.includes(undefined) ? undefined : Math.max(...(maxima as number[]))
}

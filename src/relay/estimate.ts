import type { Channel } from '../domain/channel.ts'
import { maxCharge, type Rate } from '../domain/price.ts'
import type { Model, Settings } from '../domain/settings.ts'
import type { OutputBudget } from './call.ts'
import type { Resolution } from './routing.ts'
import type { RelayedRequest } from './dialects/dialect.ts'

/** Web searches that one call may make, at most, by what is asked for. */
const HELD_SEARCHES = 10
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
  const searches = request.webSearch ? HELD_SEARCHES : 0
  const { tokens, named } = outputBound(request, channels, model, holdTokens)
  const most = (output: number): number => maxCharge(rate, request.promptBound, output, searches)
  const amount = most(tokens)
  return {
    amount,
    budget: {
      tokens,
      named,
      slice: holdTokens,
      sliceQuota: most(tokens + holdTokens) - amount,
    },
    promptTokens: Math.ceil(request.promptBound / EXPECTED_BYTES_PER_TOKEN),
  }
}

/** The most output that any of the channels will be asked for, and whether each of them is told a maximum. */
function outputBound(
  request: RelayedRequest,
  channels: readonly Channel[],
  model: Model,
  holdTokens: number,
): Pick<OutputBudget, 'tokens' | 'named'> {
  let tokens = 0
  let named = true
  for (const channel of channels) {
    const maximum = request.outputMaximum(channel, model)
    named &&= maximum !== undefined
    tokens = Math.max(tokens, (maximum ?? holdTokens) * request.answers(channel))
  }
  return { tokens, named }
}

import type { Rate } from '../domain/price.ts'
import type { Settings } from '../domain/settings.ts'
import { sumOfLines } from '../domain/cost-lines.ts'
import { isMore } from '../domain/decimal.ts'
import { priceOfUse } from '../domain/tool-price.ts'
import type { PricedTool } from '../domain/tool-use.ts'
import type { ChannelRequest } from './dialects/dialect.ts'
import { toolsAt } from './tool-terms.ts'

/** Uses that a hold pays for where the request allows any number. */
const UNSTATED_USES = 4
const NONE: readonly PricedTool[] = []

/**
 * The dearest uses of tools that a hold pays for at any of the channels: of an answer that comes whole the
 * most that the request allows, of a stream one of each, as its hold grows.
 */
export function heldTools(
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
  // All tools together: the dearest ones may take all of it.
  let left = offered.maxCalls
  return uses
    .toSorted((one, other) => (isMore(one.price, other.price) ? -1 : 1))
    .map((use) => {
      const count = Math.min(use.count, left)
      left -= count
      return { ...use, count }
    })
}

import type { AdvisorTokens, OfferedTool } from '@sluice/wire/tool-use'
import { cacheWriteTokens, promptTokens } from '@sluice/wire/usage'
import type { Price } from './price.ts'
import type { Model } from './records/model.ts'
import type { TokenPrices } from './token-kinds.ts'
import type { PricedTool } from './tool-use.ts'

/** Output tokens that one use is assumed to have at most if the request states no maximum. */
const UNSTATED_OUTPUT = 65_536

/** Prices the tokens of other models that a provider asked, by their own prices. `docs/configuration.md: Tools`. */
export function pricedAdvisors(
  advisors: readonly AdvisorTokens[],
  priceOf: (model: string) => Price | undefined,
): readonly PricedTool[] {
  return advisors.flatMap(({ model, usage }): readonly PricedTool[] => {
    const price = priceOf(model)
    if (!price) return []
    const prices = pricesFor(price, promptTokens(usage))
    return [
      { kind: 'advisor_input', count: usage.input, price: prices.input },
      { kind: 'advisor_cached', count: usage.cacheRead, price: prices.cache_read },
      {
        kind: 'advisor_cache_write',
        count: cacheWriteTokens(usage),
        price: usage.cacheWrite1h > 0 ? prices.cache_write_1h : prices.cache_write_5m,
      },
      { kind: 'advisor_output', count: usage.output, price: prices.output },
    ]
  })
}

/**
 * What is held for the uses of a tool that asks another model: its context and its output for each of them.
 * Undefined if the tool asks none, or one without a price.
 */
export function heldAdvisor(
  { advisor }: OfferedTool,
  uses: number,
  modelOf: (name: string) => Pick<Model, 'price' | 'contextTokens'>,
): readonly PricedTool[] | undefined {
  if (!advisor) return undefined
  const { price, contextTokens } = modelOf(advisor.model)
  if (!price) return undefined
  const prices = pricesFor(price, contextTokens)
  return [
    { kind: 'advisor_cache_write', count: uses * contextTokens, price: prices.cache_write_1h },
    { kind: 'advisor_output', count: uses * (advisor.maxTokens ?? UNSTATED_OUTPUT), price: prices.output },
  ]
}

function pricesFor({ tokens, tiers }: Price, prompt: number): TokenPrices {
  return tiers.findLast(({ above }) => prompt > above)?.tokens ?? tokens
}

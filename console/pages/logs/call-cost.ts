import type { CallDetail } from '../../api/calls.ts'

/**
 * A line of a call's cost. A line has no price if it is a part of the line above, or if the call has no
 * prices.
 */
export interface CallCostLine {
  readonly kind: string
  readonly count: number
  /** USD per million tokens or per unit, as a decimal text. */
  readonly price?: string
  /** The cost in quota units, as a decimal text. */
  readonly quota?: string
}

/**
 * The lines that make up the cost of a call. If the charge was not computed from counts (such as tokens), the
 * lines have counts without prices.
 */
export function callCostLines(call: CallDetail): readonly CallCostLine[] {
  const reasoning = { kind: 'reasoning', count: call.reasoning_tokens }
  const lines = call.cost ? pricedLines(call.cost) : bareLines(call)
  return lines.flatMap((line) => (line.kind === 'output' && reasoning.count > 0 ? [line, reasoning] : [line]))
}

function pricedLines(cost: NonNullable<CallDetail['cost']>): CallCostLine[] {
  return cost.map(({ kind, count, price_usd: price, quota }) => ({ kind, count, price, quota }))
}

function bareLines(call: CallDetail): CallCostLine[] {
  const written = [
    { kind: 'cache_write_5m', count: call.cache_write_5m_tokens },
    { kind: 'cache_write_30m', count: call.cache_write_30m_tokens },
    { kind: 'cache_write_1h', count: call.cache_write_1h_tokens },
    { kind: 'cache_write_12h', count: call.cache_write_12h_tokens },
  ]
  const writes = written.reduce((sum, { count }) => sum + count, 0)
  const lines = [
    { kind: 'input', count: call.prompt_tokens - call.cached_tokens - writes },
    { kind: 'cached', count: call.cached_tokens },
    ...written,
    { kind: 'output', count: call.completion_tokens },
    { kind: 'web_search', count: call.web_searches },
    { kind: 'search_unit', count: call.search_units },
  ]
  return lines.filter(({ kind, count }) => count > 0 || kind === 'input' || kind === 'output')
}

import type { CallDetail } from '../../api/calls.ts'

/** A line of the cost. A line without a price is a part of the line above, or there are no prices. */
export interface CountedLine {
  readonly kind: string
  readonly count: number
  /** USD per million or per unit, as a decimal text. */
  readonly price?: string
  /** Quota units as a decimal text. */
  readonly quota?: string
}

/** The lines of a cost, or only the counts where the charge does not follow from them. */
export function countedLines(call: CallDetail): readonly CountedLine[] {
  const reasoning = { kind: 'reasoning', count: call.reasoning_tokens }
  const lines = call.cost ? pricedLines(call.cost) : bareLines(call)
  return lines.flatMap((line) => (line.kind === 'output' && reasoning.count > 0 ? [line, reasoning] : [line]))
}

function pricedLines(cost: NonNullable<CallDetail['cost']>): CountedLine[] {
  return cost.map(({ kind, count, price_usd: price, quota }) => ({ kind, count, price, quota }))
}

function bareLines(call: CallDetail): CountedLine[] {
  const written = call.cache_write_5m_tokens + call.cache_write_1h_tokens
  const lines = [
    { kind: 'input', count: call.prompt_tokens - call.cached_tokens - written },
    { kind: 'cached', count: call.cached_tokens },
    { kind: 'cache_write_5m', count: call.cache_write_5m_tokens },
    { kind: 'cache_write_1h', count: call.cache_write_1h_tokens },
    { kind: 'output', count: call.completion_tokens },
    { kind: 'web_search', count: call.web_searches },
    { kind: 'search_unit', count: call.search_units },
  ]
  return lines.filter(({ kind, count }) => count > 0 || kind === 'input' || kind === 'output')
}

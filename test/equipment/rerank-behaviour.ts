import type { Whole } from './behaviour.ts'

/** A result as upstreams send it. */
export interface RankedResult {
  readonly index: number
  readonly relevance_score: number
  readonly document?: unknown
}

/** Results with these scores, one for each document in order. */
export function scored(...scores: readonly number[]): RankedResult[] {
  return scores.map((score, index) => ({ index, relevance_score: score }))
}

/** A response in the format of Cohere's first or second version, which charge for searches. */
export function cohereAnswer(results: readonly RankedResult[], version: '1' | '2' = '1'): Whole {
  const meta = { api_version: { version }, billed_units: { search_units: 1 } }
  return { kind: 'whole', body: JSON.stringify({ id: 'rank-1', results, meta }) }
}

/** A response in Jina's format, which reports tokens. */
export function jinaAnswer(results: readonly RankedResult[], tokens: number): Whole {
  return {
    kind: 'whole',
    body: JSON.stringify({ model: 'their-model', object: 'list', usage: { total_tokens: tokens }, results }),
  }
}

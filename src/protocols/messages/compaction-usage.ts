import { asRecord } from '../json/record.ts'
import { type Counts, count } from '../token-count.ts'

const COUNTS = [
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'output_tokens',
] as const

/**
 * Finds the compactions among a usage's iterations: the tokens that the provider took to summarize the
 * conversation. It bills them but leaves them out of the sums, which cover the reply's iterations. Returns
 * none if the sums already equal all iterations, because a proxy has added them up.
 */
export function compactionsIn(usage: Counts): Counts[] {
  const iterations = listed(usage['iterations'])
  const compactions = iterations.filter(({ type }) => type === 'compaction')
  return compactions.length > 0 && totalOf(usage) < iterations.reduce((sum, one) => sum + totalOf(one), 0)
    ? compactions
    : []
}

function listed(iterations: unknown): Counts[] {
  return Array.isArray(iterations)
    ? iterations.map((one: unknown) => asRecord(one)).filter((one) => one !== undefined)
    : []
}

function totalOf(counts: Counts): number {
  return COUNTS.reduce((sum, name) => sum + count(counts, name), 0)
}

import { USAGE_COUNTS } from './records/usage-counts.ts'
import { PROMPT_COUNTS, type TokenCount } from './token-kinds.ts'

/**
 * Usage of one response. Counts do not overlap, except for those that are part of others: `input` excludes
 * cached tokens. All are non-negative safe integers. Counts without a column may be absent if they are 0 or
 * unknown; they affect the charge and are stored in the particulars of the call.
 */
export interface Usage
  extends Readonly<Record<keyof typeof USAGE_COUNTS, number>>,
    Readonly<Partial<Record<Exclude<TokenCount, keyof typeof USAGE_COUNTS>, number>>> {}

/** Zero usage. */
export const NO_USAGE: Usage = Object.fromEntries(
  Object.keys(USAGE_COUNTS).map((name) => [name, 0]),
) as Record<keyof typeof USAGE_COUNTS, number>

/** All prompt tokens, cached or not; they determine the price tier. */
export function promptTokens(usage: Usage): number {
  let tokens = 0
  for (const count of PROMPT_COUNTS) tokens += usage[count] ?? 0
  return tokens
}

/** Tokens written to caches, of any duration. */
export function writtenTokens(usage: Usage): number {
  return promptTokens(usage) - usage.input - usage.cacheRead
}

/** Adds all counts of two usages. */
export function addedUsage(one: Usage, other: Usage): Usage {
  const names = Object.keys(NO_USAGE) as (keyof Usage)[]
  return Object.fromEntries(
    names.map((name) => [name, (one[name] ?? 0) + (other[name] ?? 0)]),
  ) as unknown as Usage
}

import { NO_USAGE, type Usage } from '../domain/usage.ts'

/** No answer has more tokens than this; a larger figure is a fault of the upstream's. */
const MAX_COUNT = 1_000_000_000

const KINDS = Object.keys(NO_USAGE) as (keyof Usage)[]

/** An upstream's usage object, or a part of one. */
export type Counts = Readonly<Record<string, unknown>>

/** Whether every count is one, and reasoning a part of the output. */
export function isSound(usage: Usage): boolean {
  return (
    KINDS.every((kind) => Number.isSafeInteger(usage[kind]) && usage[kind] >= 0) &&
    usage.reasoning <= usage.output
  )
}

/** The largest of counts that mean the same, by their names; not a number if one of them is none. */
export function most(counts: Counts, ...names: readonly string[]): number {
  let largest = 0
  for (const name of names) largest = Math.max(largest, count(counts, name))
  return largest
}

/** 0 where nothing is said; not a number where what is said is no count. */
export function count(counts: Counts, name: string): number {
  const value = counts[name]
  return value === undefined || value === null ? 0 : toCount(value)
}

/** Not a number where the value is no credible count. */
export function toCount(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
    ? value
    : Number.NaN
}

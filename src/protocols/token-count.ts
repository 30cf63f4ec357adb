import type { Usage } from '../domain/usage.ts'

/** No answer has more tokens than this; a larger figure is a fault of the upstream's. */
const MAX_COUNT = 1_000_000_000

/** An upstream's usage object, or a part of one. */
export type Counts = Readonly<Record<string, unknown>>

/** Whether every count is one, and reasoning a part of the output. */
export function isSound(usage: Usage): boolean {
  const sound = Object.values(usage).every((tokens) => Number.isSafeInteger(tokens) && tokens >= 0)
  return sound && usage.reasoning <= usage.output
}

/** The largest of counts that mean the same; not a number if one of them is none. */
export function most(...places: readonly (readonly [Counts, string])[]): number {
  return Math.max(...places.map(([counts, name]) => count(counts, name)))
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

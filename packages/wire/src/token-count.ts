/** Largest plausible count of tokens. */
const MAX_COUNT = 1_000_000_000

/** Usage object of an upstream, or a part of it. */
export type Counts = Readonly<Record<string, unknown>>

/** Returns a plausible count, an integer from 0 to 1,000,000,000; undefined for anything else. */
export function toCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
    ? value
    : undefined
}

/** Returns the count of this name; 0 if it is implausible. */
export function count(counts: Counts, name: string): number {
  return toCount(counts[name]) ?? 0
}

/** Returns the largest of several counts with the same meaning. */
export function maxCount(counts: Counts, ...names: readonly string[]): number {
  let largest = 0
  for (const name of names) largest = Math.max(largest, count(counts, name))
  return largest
}

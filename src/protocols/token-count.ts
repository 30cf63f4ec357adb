/** No answer has more tokens than this; a larger figure is a fault of the upstream's. */
const MAX_COUNT = 1_000_000_000

/** An upstream's usage object, or a part of one. */
export type Counts = Readonly<Record<string, unknown>>

/** A count that can be believed: an integer from 0 to 1,000,000,000; undefined for anything else. */
export function toCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT
    ? value
    : undefined
}

/** The count of that name; 0 if there is none that can be believed. */
export function count(counts: Counts, name: string): number {
  return toCount(counts[name]) ?? 0
}

/** The largest of counts that mean the same, by their names. */
export function maxCount(counts: Counts, ...names: readonly string[]): number {
  let largest = 0
  for (const name of names) largest = Math.max(largest, count(counts, name))
  return largest
}

/**
 * The first id that a call which begins at that moment can have: an id is a UUID, in lower case, that begins
 * with the millisecond of the call's start, so that the order of ids is the order of time.
 */
export function firstIdOf(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}

/** When the call of that id began, in milliseconds; undefined for a text that is no such id. */
export function startOf(id: string): number | undefined {
  const [, high, low] = /^([0-9a-f]{8})-([0-9a-f]{4})(?:-|$)/.exec(id) ?? []
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16)
}

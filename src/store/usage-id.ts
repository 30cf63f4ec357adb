/**
 * Maximum milliseconds from the time in the id of a call to its end, for the call to be found by its end and kept for its
 * time. The line of a batch may end days after the batch was made, and a call after a crash when it is settled.
 */
export const MAX_CALL_MS = 7 * 24 * 3_600_000

/**
 * Returns the lowest id of calls that begin in this Unix millisecond. An id is a lower-case UUID that begins
 * with the start time of the call, so that ids sort by time.
 */
export function firstCallIdAt(ms: number): string {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}

/** Returns the time in a UUID of version 7, in Unix milliseconds. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/**
 * Returns the start time of the call with this id, in Unix milliseconds; undefined if the text is not such an
 * id.
 */
export function startMsOfCall(id: string): number | undefined {
  const [, high, low] = /^([0-9a-f]{8})-([0-9a-f]{4})(?:-|$)/.exec(id) ?? []
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16)
}

/** When the batch with this id was made, in Unix milliseconds; NaN if the text is not such an id. */
export function timeOfBatchId(id: string): number {
  return Number.parseInt(id.slice(id.indexOf('_') + 1).slice(0, 12), 16)
}

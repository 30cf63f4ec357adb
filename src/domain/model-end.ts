/** The end of a model, as its vendor stated it. */
export interface ModelEnd {
  /** The day (`2026-10-23`); the model ends at 00:00 UTC. */
  readonly on: string
  /** When the vendor deprecated the model, otherwise when the end became known; Unix milliseconds. */
  readonly knownMs: number
}

/** An end that the model list of an upstream stated. */
export interface ListedEnd {
  /** The tag of the upstream's address. */
  readonly source: string
  /** The upstream's name for the model. */
  readonly model: string
  readonly ends_on: string
  /** Unix milliseconds. */
  readonly known_ms: number
}

/** The time of an end, in Unix milliseconds. */
export function endMs({ on }: Pick<ModelEnd, 'on'>): number {
  return Date.parse(on)
}

const DAY = /^(\d{4}-\d{2}-\d{2})(?:T[\d:.]{5,20}(?:Z|[+-]\d{2}:\d{2}))?$/

/** The day of a date or of an ISO 8601 time, in UTC; undefined for any other value. */
export function readDay(value: unknown): string | undefined {
  const day = typeof value === 'string' ? DAY.exec(value)?.[1] : undefined
  if (day === undefined) return undefined
  const time = new Date(value as string)
  // A day that the calendar does not have becomes another one.
  if (Number.isNaN(time.getTime()) || new Date(day).toISOString().slice(0, 10) !== day) return undefined
  return time.toISOString().slice(0, 10)
}

/** Days before the end of a model at which receivers of alerts are informed, the last one first. */
export const ENDING_DAYS = [1, 7, 30, 60] as const

const DAY_MS = 86_400_000

/** Whole days until an end, rounded up; 0 if it has passed. */
export function daysUntil(end: Pick<ModelEnd, 'on'>, nowMs: number): number {
  return Math.max(0, Math.ceil((endMs(end) - nowMs) / DAY_MS))
}

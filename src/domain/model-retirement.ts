/** The shutdown of a model, as its vendor announced it. */
export interface ModelRetirement {
  /** The day of the shutdown (`2026-10-23`); it happens at 00:00 UTC. */
  readonly on: string
  /** When the vendor deprecated the model, otherwise when the shutdown became known, in Unix milliseconds. */
  readonly knownMs: number
}

/** A shutdown that an upstream's model list announced. */
export interface ListedRetirement {
  /** A hash that identifies the upstream by its address. */
  readonly source: string
  /** The upstream's name for the model. */
  readonly model: string
  readonly ends_on: string
  /** When the shutdown became known, in Unix milliseconds. */
  readonly known_ms: number
}

/** The time of a shutdown, in Unix milliseconds. */
export function retirementTimeMs({ on }: Pick<ModelRetirement, 'on'>): number {
  return Date.parse(on)
}

const DAY = /^(\d{4}-\d{2}-\d{2})(?:T[\d:.]{5,20}(?:Z|[+-]\d{2}:\d{2}))?$/

/** The day (`2026-10-23`, UTC) of a date or an ISO 8601 time; undefined for any other value. */
export function parseIsoDay(value: unknown): string | undefined {
  const day = typeof value === 'string' ? DAY.exec(value)?.[1] : undefined
  if (day === undefined) return undefined
  const time = new Date(value as string)
  // JavaScript turns a day that does not exist, such as February 30, into another one.
  if (Number.isNaN(time.getTime()) || new Date(day).toISOString().slice(0, 10) !== day) return undefined
  return time.toISOString().slice(0, 10)
}

/** Numbers of days before a model's shutdown at which alerts are sent, in ascending order. */
export const RETIREMENT_ALERT_DAYS = [1, 7, 30, 60] as const

const DAY_MS = 86_400_000

/** Whole days until a shutdown, rounded up; 0 if it has passed. */
export function daysUntilRetirement(end: Pick<ModelRetirement, 'on'>, nowMs: number): number {
  return Math.max(0, Math.ceil((retirementTimeMs(end) - nowMs) / DAY_MS))
}

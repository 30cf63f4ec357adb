/** Lengths of the intervals in a time series. */
export const CALENDAR_STEPS = ['hour', 'day', 'month'] as const

/** The length of the intervals in a time series. */
export type CalendarStep = (typeof CALENDAR_STEPS)[number]

/** The end of the year 9999 in Unix seconds. A larger number is refused: it is probably in milliseconds. */
export const MAX_TIME_S = 253_402_300_799

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Calendar computations in a time zone. Instants are in Unix milliseconds. */
export class Calendar {
  readonly #format: Intl.DateTimeFormat

  /**
   * `timeZone` is a name from the IANA time zone database, or an offset such as `+05:30`. Throws for anything
   * else.
   */
  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** The local time of an instant, in milliseconds as if the local time were UTC. */
  wallClock(ms: number): number {
    const parts = { year: 0, month: 1, day: 1, hour: 0, minute: 0, second: 0 }
    for (const { type, value } of this.#format.formatToParts(ms))
      if (type in parts) parts[type as keyof typeof parts] = Number(value)
    const { year, month, day, hour, minute, second } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second)
  }

  /**
   * The first instant at which clocks show this local time. If clocks skip it (daylight saving time), the
   * instant of the jump or shortly after.
   */
  instantOf(wallClock: number): number {
    const offset = (ms: number): number => this.wallClock(ms) - ms
    const [before, after] = [offset(wallClock - DAY_MS), offset(wallClock + DAY_MS)]
    const candidates = [wallClock - before, wallClock - after].toSorted((one, other) => one - other)
    return candidates.find((ms) => this.wallClock(ms) === wallClock) ?? wallClock - before
  }

  /** Start of the hour, day or month that contains an instant. */
  startOf(step: CalendarStep, ms: number): number {
    if (step === 'hour') {
      const hour = ms - this.#sinceFullHour(ms)
      const passed = this.#sinceFullHour(hour)
      // Clocks have moved by half an hour since, when they showed a full hour.
      return passed === 0 ? hour : hour + HOUR_MS - passed
    }
    const start = startOfDate(this.wallClock(ms))
    return this.instantOf(step === 'day' ? start : start - (new Date(start).getUTCDate() - 1) * DAY_MS)
  }

  #sinceFullHour(ms: number): number {
    return ((this.wallClock(ms) % HOUR_MS) + HOUR_MS) % HOUR_MS
  }

  /** Start of the hour, day or month after the one that starts at the given instant. */
  nextStart(step: CalendarStep, start: number): number {
    if (step === 'hour') return this.startOf(step, start + HOUR_MS)
    const date = new Date(startOfDate(this.wallClock(start)))
    if (step === 'day') date.setUTCDate(date.getUTCDate() + 1)
    else date.setUTCMonth(date.getUTCMonth() + 1, 1)
    return this.instantOf(date.getTime())
  }

  /**
   * Start of the preceding period: it ends at `fromMs` and is as long, in local time, as the given period.
   */
  previousStart(fromMs: number, toMs: number): number {
    const from = this.wallClock(fromMs)
    return this.instantOf(from - (this.wallClock(toMs) - from))
  }

  /** Formats an instant as ISO 8601, in local time with the zone's offset. */
  format(ms: number): string {
    const clock = this.wallClock(ms)
    const minutes = Math.round((clock - ms) / 60_000)
    const two = (value: number): string => String(value).padStart(2, '0')
    const offset = `${minutes < 0 ? '-' : '+'}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`
    return `${new Date(clock).toISOString().slice(0, 19)}${offset}`
  }
}

function startOfDate(wallClock: number): number {
  return Math.floor(wallClock / DAY_MS) * DAY_MS
}

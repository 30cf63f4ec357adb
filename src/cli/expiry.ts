const SECONDS = new Map([
  ['m', 60],
  ['h', 3600],
  ['d', 86_400],
  ['w', 604_800],
])

/** The end of the year 9999; a larger number is probably in milliseconds. */
const MAX_TIME = 253_402_300_799

const DATE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?$/i

/**
 * Parses the expiry of a key into Unix seconds; −1 for `never`. Accepts a duration from now (`90m`, `12h`,
 * `30d`, `2w`), a date or date and time (UTC unless it states an offset), and Unix seconds. Undefined for
 * anything else.
 */
export function parseExpiry(text: string, nowMs: number): number | undefined {
  if (text === 'never' || text === '-1') return -1
  const [, amount, unit = ''] = /^(\d{1,6})([mhdw])$/.exec(text) ?? []
  if (amount !== undefined)
    return inRange(Math.floor(nowMs / 1000) + Number(amount) * (SECONDS.get(unit) ?? 0))
  if (/^\d{1,12}$/.test(text)) return inRange(Number(text))
  if (!DATE.test(text)) return undefined
  const normalized = text.toUpperCase().replace(' ', 'T')
  const isDay = !normalized.includes('T')
  const milliseconds = Date.parse(
    isDay || /(?:Z|[+-]\d\d:\d\d)$/.test(normalized.slice(10)) ? normalized : `${normalized}Z`,
  )
  if (
    Number.isNaN(milliseconds) ||
    (isDay && new Date(milliseconds).toISOString().slice(0, 10) !== normalized)
  ) {
    return undefined
  }
  return inRange(Math.floor(milliseconds / 1000))
}

function inRange(seconds: number): number | undefined {
  return seconds > 0 && seconds <= MAX_TIME ? seconds : undefined
}

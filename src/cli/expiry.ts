const SECONDS = new Map([
  ['m', 60],
  ['h', 3600],
  ['d', 86_400],
  ['w', 604_800],
])

/** The end of the year 9999: a later time is one in milliseconds. */
const MAX_TIME = 253_402_300_799

const DATE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?$/i

/**
 * When a key expires, in Unix seconds; −1 for never. Written `never`, as a span from now (`90m`, `12h`,
 * `30d`, `2w`), as a date or a date with a time (in UTC unless it says otherwise), or as Unix seconds.
 * Undefined if it is none of these.
 */
export function parseExpiry(text: string, nowMs: number): number | undefined {
  if (text === 'never' || text === '-1') return -1
  const [, amount, unit = ''] = /^(\d{1,6})([mhdw])$/.exec(text) ?? []
  if (amount !== undefined) return inRange(Math.floor(nowMs / 1000) + Number(amount) * (SECONDS.get(unit) ?? 0))
  if (/^\d{1,12}$/.test(text)) return inRange(Number(text))
  if (!DATE.test(text)) return undefined
  const written = text.toUpperCase().replace(' ', 'T')
  const isDay = !written.includes('T')
  const milliseconds = Date.parse(
    isDay || /(?:Z|[+-]\d\d:\d\d)$/.test(written.slice(10)) ? written : `${written}Z`,
  )
  if (
    Number.isNaN(milliseconds) ||
    (isDay && new Date(milliseconds).toISOString().slice(0, 10) !== written)
  ) {
    return undefined
  }
  return inRange(Math.floor(milliseconds / 1000))
}

function inRange(seconds: number): number | undefined {
  return seconds > 0 && seconds <= MAX_TIME ? seconds : undefined
}

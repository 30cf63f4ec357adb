const MILLISECONDS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
])

const BYTES: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['B', 1],
  ['KB', 1e3],
  ['MB', 1e6],
  ['GB', 1e9],
  ['KiB', 2 ** 10],
  ['MiB', 2 ** 20],
  ['GiB', 2 ** 30],
])

/** Milliseconds in `500ms`, `5s`, `20m` or `1h`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  return measure(text, MILLISECONDS)
}

/** Formats milliseconds as a text such as `5s`, in the largest unit that divides them. */
export function durationText(milliseconds: number): string {
  const [unit, factor] = [...MILLISECONDS].findLast(([, factor]) => milliseconds % factor === 0)!
  return `${milliseconds / factor}${unit}`
}

/** Formats a number of bytes as a text such as `32MiB`, in the largest unit that divides it. */
export function sizeText(bytes: number): string {
  const fitting = [...BYTES].filter(([, factor]) => bytes % factor === 0)
  const [unit, factor] = fitting.reduce((largest, one) => (one[1] > largest[1] ? one : largest))
  return `${bytes / factor}${unit}`
}

/** Bytes in `32MiB`, `1KB` or `1024`; undefined for anything else. */
export function parseSize(text: string): number | undefined {
  return measure(text, BYTES)
}

function measure(text: string, units: ReadonlyMap<string, number>): number | undefined {
  const [, digits, unit] = /^(\d{1,15}) ?([A-Za-z]*)$/.exec(text.trim()) ?? []
  const factor = units.get(unit ?? '?')
  const result = factor === undefined ? Number.NaN : Number(digits) * factor
  return Number.isSafeInteger(result) ? result : undefined
}

/**
 * A set of code points as a flat list of intervals: first, last, first, last, in ascending order and without
 * overlap.
 */
export type CodePointRanges = readonly number[]

export const LAST_CODE_POINT = 0x10ffff

/** The characters of words, as RE2 defines them for `\w` and `\b`. */
export const WORD_CHARACTERS: CodePointRanges = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a]

export const NEWLINE: CodePointRanges = [0x0a, 0x0a]

/** Sorts intervals, and joins those that touch or overlap. */
export function normalizeRanges(pairs: CodePointRanges): CodePointRanges {
  const sorted: [number, number][] = []
  for (let at = 0; at < pairs.length; at += 2) sorted.push([pairs[at] as number, pairs[at + 1] as number])
  sorted.sort((a, b) => a[0] - b[0])
  const result: number[] = []
  for (const [first, last] of sorted) {
    const end = result.at(-1)
    if (end !== undefined && first <= end + 1) result[result.length - 1] = Math.max(end, last)
    else result.push(first, last)
  }
  return result
}

export function containsCodePoint(ranges: CodePointRanges, point: number): boolean {
  for (let at = 0; at < ranges.length; at += 2)
    if (point >= (ranges[at] as number) && point <= (ranges[at + 1] as number)) return true
  return false
}

let folds: ReadonlyMap<number, readonly number[]> | undefined

/** The code points that equal this one if case is ignored (simple case folding), including itself. */
export function caseVariants(point: number): readonly number[] {
  folds ??= caseFolds()
  return folds.get(foldKey(point)) ?? [point]
}

// Blocks that contain all letters with upper and lower case.
const BLOCKS_WITH_CASE: CodePointRanges = [
  0x41, 0x2fff, 0xa640, 0xabff, 0xff21, 0xff5a, 0x10400, 0x10cff, 0x118a0, 0x118df, 0x16e40, 0x16e7f, 0x1e900,
  0x1e943,
]

function caseFolds(): ReadonlyMap<number, readonly number[]> {
  const variants = new Map<number, number[]>()
  for (let at = 0; at < BLOCKS_WITH_CASE.length; at += 2) {
    for (let point = BLOCKS_WITH_CASE[at] as number; point <= (BLOCKS_WITH_CASE[at + 1] as number); point++) {
      const key = foldKey(point)
      const known = variants.get(key)
      if (known) known.push(point)
      else variants.set(key, [point])
    }
  }
  return variants
}

function foldKey(point: number): number {
  // Turkish dotted and dotless i are separate letters, not case variants of i.
  if (point === 0x130 || point === 0x131) return point
  const upper = single(String.fromCodePoint(point).toUpperCase()) ?? point
  return single(String.fromCodePoint(upper).toLowerCase()) ?? upper
}

function single(text: string): number | undefined {
  const point = text.codePointAt(0)
  return point !== undefined && text.length === (point > 0xffff ? 2 : 1) ? point : undefined
}

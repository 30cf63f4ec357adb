const COMMA = 0x2c
const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e
const ZERO = 0x30
const SMALL_E = 0x65
const LARGE_E = 0x45
const CLOSE = 0x5d
const SPACE = 0x20

/** Returned instead of a position if there is no valid number. */
const NONE = -1
/** Bytes of a number in single precision. */
const BYTES = 4
/** Powers of ten, and the largest one that a double holds exactly. */
const POWERS = Float64Array.from({ length: 50 }, (_, exponent) => Number(`1e${exponent}`))
const MAX_POWER = POWERS.length - 1
const MAX_EXACT_POWER = 22
/** Maximum characters of a number for which the error of the sum of its digits is below `MARGIN`. */
const MAX_CHARACTERS = 32
/** Far more than twice the relative error of 15 roundings of a double. */
const MARGIN = 2 ** -46

/**
 * Converts a JSON list of numbers to single precision, little-endian. Returns their count, or undefined if it
 * is not a list of numbers. The numbers equal those of `JSON.parse`, but no objects are created, because a
 * response has millions of numbers. `out` needs room for one number per two bytes of `list`, which ends with
 * its only closing bracket.
 */
export function readNumbers(list: Buffer, out: DataView): number | undefined {
  let at = afterSpace(list, 1)
  if (list[at] === CLOSE) return 0
  for (let count = 0; ; ) {
    at = readNumber(list, at, out, count++ * BYTES)
    if (at === NONE) return undefined
    at = afterSpace(list, at)
    if (list[at] === CLOSE) return count
    if (list[at] !== COMMA) return undefined
    at = afterSpace(list, at + 1)
  }
}

/** Reads and writes a number. Returns the position after it, or `NONE`. */
function readNumber(list: Buffer, start: number, out: DataView, offset: number): number {
  let at = start
  const sign = list[at] === MINUS ? -1 : 1
  if (sign < 0) at++
  let digit = (list[at] as number) - ZERO
  if (!(digit >= 0 && digit <= 9)) return NONE
  let digits = digit
  // No digit may follow a leading zero.
  for (digit = (list[++at] as number) - ZERO; digits !== 0 && digit >= 0 && digit <= 9; ) {
    digits = digits * 10 + digit
    digit = (list[++at] as number) - ZERO
  }
  let exponent = 0
  if (list[at] === POINT) {
    const first = ++at
    for (digit = (list[at] as number) - ZERO; digit >= 0 && digit <= 9; ) {
      digits = digits * 10 + digit
      digit = (list[++at] as number) - ZERO
    }
    if (at === first) return NONE
    exponent = first - at
  }
  if (list[at] === SMALL_E || list[at] === LARGE_E) {
    at++
    const isFraction = list[at] === MINUS
    if (isFraction || list[at] === PLUS) at++
    const first = at
    let stated = 0
    for (digit = (list[at] as number) - ZERO; digit >= 0 && digit <= 9; ) {
      stated = Math.min(stated * 10 + digit, 10_000)
      digit = (list[++at] as number) - ZERO
    }
    if (at === first) return NONE
    exponent += isFraction ? -stated : stated
  }
  const power = Math.abs(exponent)
  if (power > MAX_POWER || at - start > MAX_CHARACTERS) return readSlowly(list, start, at, out, offset)
  const size = exponent < 0 ? digits / (POWERS[power] as number) : digits * (POWERS[power] as number)
  // The double nearest to the text is this one if both are exact. Otherwise all doubles within the margin
  // must round to the same single-precision number.
  const isExact = digits <= Number.MAX_SAFE_INTEGER && power <= MAX_EXACT_POWER
  if (!isExact && Math.fround(size * (1 - MARGIN)) !== Math.fround(size * (1 + MARGIN)))
    return readSlowly(list, start, at, out, offset)
  out.setFloat32(offset, size * sign, true)
  return at
}

function readSlowly(list: Buffer, start: number, end: number, out: DataView, offset: number): number {
  out.setFloat32(offset, Number(list.toString('latin1', start, end)), true)
  return end
}

function afterSpace(list: Buffer, from: number): number {
  let at = from
  for (let byte = list[at] as number; byte <= SPACE; byte = list[at] as number) {
    if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
    at++
  }
  return at
}

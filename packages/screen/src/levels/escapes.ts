/** Maximum number of times that the escapes of a text are resolved; what is escaped more often is read as it stands. */
export const MAX_LEVELS = 8

const SHORT: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/g
const ESCAPE_HERE = new RegExp(ESCAPE.source, 'y')
/** Matches what can still become an escape if more text arrives. */
const BEGUN = /\\(?:u[0-9a-fA-F]{0,3})?$/y

/** The escape of JSON that begins at this position of a text; undefined if there is none. */
export function escapeAt(text: string, at: number): string | undefined {
  ESCAPE_HERE.lastIndex = at
  return ESCAPE_HERE.exec(text)?.[0]
}

/** Whether the text ends with what begins at this position and can still become an escape. */
export function isBegunEscape(text: string, at: number): boolean {
  BEGUN.lastIndex = at
  return BEGUN.test(text)
}

/** The UTF-16 code unit for which an escape stands. */
export function unitOf(escape: string): string {
  return SHORT[escape[1] as string] ?? String.fromCharCode(Number.parseInt(escape.slice(2), 16))
}

/** Resolves the escapes of a text, this number of times. What is no valid escape stays as it is. */
export function unescaped(text: string, times: number): string {
  let result = text
  for (let time = 0; time < times && result.includes('\\'); time += 1)
    result = result.replaceAll(ESCAPE, unitOf)
  return result
}

/** Writes a text as it stands in a string of JSON that is itself in a string, and so on, this number of times. */
export function escaped(text: string, times: number): string {
  let result = text
  for (let time = 0; time < times; time += 1) {
    const next = JSON.stringify(result).slice(1, -1)
    if (next === result) return result
    result = next
  }
  return result
}

/**
 * The escapes of one level of a text, and where the units that they stand for are in the next level. Positions of the
 * next level are those of this level, less what the escapes before them have in addition.
 */
export class EscapeMap {
  /** Positions of the units in the next level, in order. */
  #units: number[] = []
  /** What has to be added to a position after each of these units. */
  #shifts: number[] = []
  /** The same for a position before the first of them. */
  #shiftBefore = 0

  /** The difference between positions of this level and of the next one at the end of the text. */
  get shift(): number {
    return this.#shifts.at(-1) ?? this.#shiftBefore
  }

  /** Adds the escape at this position, after all others. */
  add(at: number, length: number): void {
    const { shift } = this
    this.#units.push(at - shift)
    this.#shifts.push(shift + length - 1)
  }

  /** The position of this level for one in the next level. */
  below(position: number): number {
    return position + this.#shiftAfter(this.#before(position))
  }

  /**
   * The position of the next level for one in this level. One within an escape, and within a unit that is an escape
   * itself, is the middle of the unit: a half.
   */
  above(position: number): number {
    const { length } = this.#units
    let low = 0
    let high = length
    while (low < high) {
      const middle = (low + high) >> 1
      const end = (this.#units[middle] as number) + 1 + (this.#shifts[middle] as number)
      if (end <= position) low = middle + 1
      else high = middle
    }
    const before = this.#shiftAfter(low)
    const unit = this.#units[low]
    return unit !== undefined && position > unit + before ? unit + 0.5 : position - before
  }

  /** Forgets the escapes whose units are before this position of the next level. */
  forget(position: number): void {
    const count = this.#before(position)
    if (count < 1024 || count < this.#units.length / 2) return
    this.#shiftBefore = this.#shiftAfter(count)
    this.#units = this.#units.slice(count)
    this.#shifts = this.#shifts.slice(count)
  }

  /** The number of units before a position of the next level. */
  #before(position: number): number {
    let low = 0
    let high = this.#units.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#units[middle] as number) < position) low = middle + 1
      else high = middle
    }
    return low
  }

  #shiftAfter(count: number): number {
    return count === 0 ? this.#shiftBefore : (this.#shifts[count - 1] as number)
  }
}

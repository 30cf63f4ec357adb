import type { SourceRow } from './source.ts'

/** Error: a value of another gateway's row is not of the type that its column should hold. */
export class UnreadableValue extends Error {
  constructor(column: string, expected: string) {
    super(`${column}: expected ${expected}`)
    this.name = 'UnreadableValue'
  }
}

/** Maximum length of a text that is read from one cell, in UTF-16 units. */
const MAX_TEXT_LENGTH = 4 * 2 ** 20

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads the cells of one row of another gateway. Every value is checked, because SQLite can store any type in
 * any column, and PostgreSQL returns all values as texts. Methods throw `UnreadableValue` if a value has
 * another type.
 */
export class RowReader {
  /** Sentences for the report about values that were changed or left out. */
  readonly notes: string[] = []
  readonly #row: SourceRow

  constructor(row: SourceRow) {
    this.#row = row
  }

  /** Whether the cell is null, or the row has no such column. */
  isAbsent(column: string): boolean {
    return (this.#row[column] ?? null) === null
  }

  /** Whether the row has such a column, but null in it. The other gateways read 0 there, and not the default of the column. */
  isNull(column: string): boolean {
    return this.#row[column] === null
  }

  /** Reads a safe integer; returns `absent` if the cell is empty. */
  integer(column: string, absent = 0): number {
    if (this.isAbsent(column)) return absent
    const value = this.#row[column]
    const isNumber = typeof value === 'bigint' || typeof value === 'number'
    const isDigits = typeof value === 'string' && /^ *-?\d{1,16} *$/.test(value)
    const number = isNumber || isDigits ? Number(value) : Number.NaN
    if (Number.isSafeInteger(number)) return number
    throw new UnreadableValue(column, 'a whole number below 2^53')
  }

  /** Reads a text, without the padding of fixed-width columns; returns an empty text if the cell is empty. */
  text(column: string): string {
    if (this.isAbsent(column)) return ''
    const value = this.#row[column]
    const text = this.#decoded(column, value)
    if (text.length > MAX_TEXT_LENGTH) throw new UnreadableValue(column, 'a text of at most 4 MiB')
    if (text.includes('\0') || !text.isWellFormed()) throw new UnreadableValue(column, 'a text without NUL')
    return text.trimEnd()
  }

  /** Reads a boolean; returns false if the cell is empty. */
  flag(column: string): boolean {
    const text = this.isAbsent(column) ? '' : String(this.#row[column]).toLowerCase()
    if (['1', 't', 'true'].includes(text)) return true
    if (['', '0', 'f', 'false'].includes(text)) return false
    throw new UnreadableValue(column, 'true or false')
  }

  /** Returns the result of `read`; if it throws `UnreadableValue`, adds a note and returns `fallback`. */
  lenient<Value>(read: () => Value, fallback: Value): Value {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      this.note(`${error.message}; left out`)
      return fallback
    }
  }

  /** Adds a note to the report, unless it was added already. */
  note(sentence: string): void {
    if (!this.notes.includes(sentence)) this.notes.push(sentence)
  }

  #decoded(column: string, value: unknown): string {
    if (typeof value === 'string') {
      // The source's texts were decoded so that bytes that are not UTF-8 became this replacement character.
      if (value.includes('\uFFFD')) throw new UnreadableValue(column, 'a text in UTF-8')
      return value
    }
    if (typeof value === 'bigint' || typeof value === 'number') return String(value)
    try {
      if (value instanceof Uint8Array) return utf8.decode(value)
    } catch {
      // Bytes that are not UTF-8 get the same error as other unreadable values.
    }
    throw new UnreadableValue(column, 'a text in UTF-8')
  }
}

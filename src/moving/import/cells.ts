import type { SourceRow } from './source.ts'

/** A value of another gateway's row that is not what its column should hold. */
export class UnreadableValue extends Error {
  constructor(column: string, expected: string) {
    super(`${column}: expected ${expected}`)
    this.name = 'Unreadable'
  }
}

/** The longest text that is read from one cell, in UTF-16 units. */
const MAX_TEXT_LENGTH = 4 * 2 ** 20

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads one row of another gateway, whatever its database makes of types: SQLite keeps any kind of value in
 * any column, and PostgreSQL's values come as texts. What cannot be read throws `Unreadable`.
 */
export class Cells {
  /** What was read otherwise than it stands there, in sentences. */
  readonly notes: string[] = []
  readonly #row: SourceRow

  constructor(row: SourceRow) {
    this.#row = row
  }

  /** Null, or no such column. */
  isAbsent(column: string): boolean {
    return (this.#row[column] ?? null) === null
  }

  /** A whole number that is counted exactly. */
  integer(column: string, absent = 0): number {
    if (this.isAbsent(column)) return absent
    const value = this.#row[column]
    const isNumber = typeof value === 'bigint' || typeof value === 'number'
    const isDigits = typeof value === 'string' && /^ *-?\d{1,16} *$/.test(value)
    const number = isNumber || isDigits ? Number(value) : Number.NaN
    if (Number.isSafeInteger(number)) return number
    throw new UnreadableValue(column, 'a whole number below 2^53')
  }

  /** A text; padding at its end, which columns of a fixed width have, is not part of it. */
  text(column: string): string {
    if (this.isAbsent(column)) return ''
    const value = this.#row[column]
    const text = this.#decoded(column, value)
    if (text.length > MAX_TEXT_LENGTH) throw new UnreadableValue(column, 'a text of at most 4 MiB')
    if (text.includes('\0') || !text.isWellFormed()) throw new UnreadableValue(column, 'a text without NUL')
    return text.trimEnd()
  }

  /** Yes or no. */
  flag(column: string): boolean {
    const text = this.isAbsent(column) ? '' : String(this.#row[column]).toLowerCase()
    if (['1', 't', 'true'].includes(text)) return true
    if (['', '0', 'f', 'false'].includes(text)) return false
    throw new UnreadableValue(column, 'true or false')
  }

  /** What `read` answers; where that cannot be read, `instead`, and a note. */
  lenient<Value>(read: () => Value, instead: Value): Value {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof UnreadableValue)) throw error
      this.note(`${error.message}; left out`)
      return instead
    }
  }

  /** Notes something, once. */
  note(sentence: string): void {
    if (!this.notes.includes(sentence)) this.notes.push(sentence)
  }

  #decoded(column: string, value: unknown): string {
    if (typeof value === 'string') return value
    if (typeof value === 'bigint' || typeof value === 'number') return String(value)
    try {
      if (value instanceof Uint8Array) return utf8.decode(value)
    } catch {
      // Bytes that are no text.
    }
    throw new UnreadableValue(column, 'a text')
  }
}

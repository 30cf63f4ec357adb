/** Limits on reading another gateway's database, far above the size of a real one. */
export interface ReadLimits {
  /** Maximum number of rows of one table. */
  readonly rows: number
  /** Maximum number of bytes of all tables together. */
  readonly bytes: number
  /** Timeout of one statement. */
  readonly ms: number
}

/** Limits of `sluice import`. `docs/moving.md`. */
export const READ_LIMITS: ReadLimits = { rows: 2_000_000, bytes: 512 * 2 ** 20, ms: 600_000 }

/** Counts the rows and bytes that are read from one database, which may be endless. */
export class ReadMeter {
  readonly #limits: ReadLimits
  #bytes = 0

  constructor(limits: ReadLimits) {
    this.#limits = limits
  }

  /** Begins a table. Returns a function to be called with the bytes of each row; throws above a limit. */
  table(name: string): (bytes: number) => void {
    const { rows: maxRows, bytes: maxBytes, ms } = this.#limits
    const untilMs = performance.now() + ms
    let rows = 0
    return (bytes) => {
      rows += 1
      this.#bytes += bytes
      if (rows > maxRows) throw new Error(`the table "${name}" has more than ${maxRows} rows`)
      if (this.#bytes > maxBytes) throw new Error(`its tables have more than ${maxBytes} bytes`)
      if (performance.now() > untilMs) throw tooSlow(name, ms)
    }
  }
}

/** Error for a table that was not read in time. */
export function tooSlow(table: string, ms: number): Error {
  return new Error(`reading the table "${table}" took longer than ${ms / 1000} s`)
}

/** Error for a view or similar: reading it could run code of its owner with the rights of the reader. */
export function notATable(name: string, kind: string): Error {
  return new Error(
    `"${name}" is a ${kind}, and nothing but plain tables is read: make a copy that has one in its place`,
  )
}

/** The size of a row whose values are texts, in characters. */
export function rowSize(row: Readonly<Record<string, unknown>>): number {
  return Object.values(row).reduce(
    (sum: number, value) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  )
}

/** How much of another gateway's database is read: far above what one of them holds, and below what hurts. */
export interface ReadLimits {
  /** Rows of one table. */
  readonly rows: number
  /** Bytes of all tables together. */
  readonly bytes: number
  /** For one statement. */
  readonly ms: number
}

/** Bounds of what `sluice import` reads. `docs/moving.md`. */
export const READ_LIMITS: ReadLimits = { rows: 2_000_000, bytes: 512 * 2 ** 20, ms: 600_000 }

/** Keeps count of what is read of one database, which may be made to be endless. */
export class ReadMeter {
  readonly #bounds: ReadLimits
  #bytes = 0

  constructor(bounds: ReadLimits) {
    this.#bounds = bounds
  }

  /**
   * Begins to read a table: what it returns is told the bytes of each row, and throws where it is too much.
   */
  table(name: string): (bytes: number) => void {
    const { rows: maxRows, bytes: maxBytes, ms } = this.#bounds
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

/** Says that a table was not read in time. */
export function tooSlow(table: string, ms: number): Error {
  return new Error(`reading the table "${table}" took longer than ${ms / 1000} s`)
}

/**
 * Refuses what only looks like a table: to read it would run what its maker wrote, with the rights of who
 * reads.
 */
export function notATable(name: string, kind: string): Error {
  return new Error(
    `"${name}" is a ${kind}, and nothing but plain tables is read: make a copy that has one in its place`,
  )
}

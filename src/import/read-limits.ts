import type { Socket } from 'node:net'

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
function tooSlow(table: string, ms: number): Error {
  return new Error(`reading the table "${table}" took longer than ${ms / 1000} s`)
}

/** Error for a view or similar: reading it could run code of its owner with the rights of the reader. */
export function notATableError(name: string, kind: string): Error {
  return new Error(
    `"${name}" is a ${kind}, and nothing but plain tables is read: make a copy that has one in its place`,
  )
}

/** The size of a row whose values are texts, in characters. */
export function rowCharacters(row: Readonly<Record<string, unknown>>): number {
  return Object.values(row).reduce(
    (sum: number, value) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  )
}

/** Maximum number of tables that are named; both families have some thirty. */
export const MAX_TABLES = 200

/** Timeout of an answer, as a multiple of the statement timeout. */
const TIMEOUT_FACTOR = 1.05

/** Interval of the checks while an answer arrives. */
const CHECK_INTERVAL_MS = 5

/** Maximum ratio of bytes received to bytes of values; rows have headers and lengths too. */
const WIRE_FACTOR = 4

/**
 * Maximum number of bytes between two rows, because drivers keep a message in memory until it is complete.
 */
const MAX_MESSAGE_BYTES = 64 * 2 ** 20

/** Limits until the server has accepted the user. */
const MAX_GREETING_BYTES = 65_536
const MAX_GREETING_MS = 10_000

/** Counts a row by `count`, once it is noted as complete. */
export function countRows(count: (bytes: number) => void, wire: WireLimits): (bytes: number) => void {
  return (bytes) => {
    wire.noteRow()
    count(bytes)
  }
}

/** Limits on what the server of a source sends over one connection, even if no row of it is complete. */
export class WireLimits {
  readonly #socket: Socket
  readonly #limits: ReadLimits
  readonly #stop: () => void
  #lastRowAt = 0

  /** `stop` closes the connection. */
  constructor(socket: Socket, limits: ReadLimits, stop: () => void) {
    this.#socket = socket
    this.#limits = limits
    this.#stop = stop
  }

  /** Records that a row is complete. */
  noteRow(): void {
    this.#lastRowAt = this.#socket.bytesRead
  }

  /** Rejects if the server takes too long or sends too much before it accepts the user. */
  greeting<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const ms = Math.min(MAX_GREETING_MS, this.#limits.ms)
    return this.#within(
      answer,
      ms,
      () =>
        this.#socket.bytesRead > MAX_GREETING_BYTES
          ? new Error(`its server sends more than ${MAX_GREETING_BYTES} bytes before it accepts the user`)
          : undefined,
      () => new Error(`its server did not accept the user within ${ms / 1000} s`),
    )
  }

  /** Rejects if the answer about a table takes too long or has too many bytes. */
  answer<Answer>(table: string, answer: Promise<Answer>): Promise<Answer> {
    const { bytes, ms } = this.#limits
    this.noteRow()
    return this.#within(
      answer,
      ms * TIMEOUT_FACTOR,
      () => {
        const { bytesRead } = this.#socket
        if (bytesRead > bytes * WIRE_FACTOR)
          return new Error(`its server sends more than ${bytes * WIRE_FACTOR} bytes`)
        if (bytesRead - this.#lastRowAt > MAX_MESSAGE_BYTES)
          return new Error(`its server sends a message of more than ${MAX_MESSAGE_BYTES} bytes`)
        return undefined
      },
      () => tooSlow(table, ms),
    )
  }

  async #within<Answer>(
    answer: Promise<Answer>,
    ms: number,
    excess: () => Error | undefined,
    late: () => Error,
  ): Promise<Answer> {
    const { promise, reject } = Promise.withResolvers<never>()
    const untilMs = performance.now() + ms
    const timer = setInterval(() => {
      const error = excess() ?? (performance.now() > untilMs ? late() : undefined)
      if (!error) return
      reject(error)
      this.#stop()
    }, CHECK_INTERVAL_MS)
    try {
      return await Promise.race([answer, promise])
    } finally {
      clearInterval(timer)
    }
  }
}

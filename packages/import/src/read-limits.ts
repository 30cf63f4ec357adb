import type { Socket } from 'node:net'

/** Limits on reading another gateway's database, far above the size of a real one. */
export interface ReadLimits {
  /** Maximum number of rows of one table. */
  readonly rows: number
  /** Maximum number of bytes of all tables together. */
  readonly bytes: number
  /** Timeout of one statement in milliseconds. */
  readonly ms: number
}

/** Limits for `sluice import`. `docs/moving.md`. */
export const READ_LIMITS: ReadLimits = { rows: 2_000_000, bytes: 512 * 2 ** 20, ms: 600_000 }

/**
 * Counts the rows and bytes read from one database. The limits matter because a hostile server can send rows
 * without end.
 */
export class ReadMeter {
  readonly #limits: ReadLimits
  #bytes = 0

  constructor(limits: ReadLimits) {
    this.#limits = limits
  }

  /**
   * Starts counting a table. Returns a function to call with the size of each row in bytes, which throws if a
   * limit is exceeded.
   */
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

/**
 * Error for a view or similar object. Reading it could run code of its owner with the rights of the reader.
 */
export function notATableError(name: string, kind: string): Error {
  return new Error(
    `"${name}" is a ${kind}, and nothing but plain tables is read: make a copy that has one in its place`,
  )
}

/** Total length of a row's texts in UTF-16 code units. */
export function rowCharacters(row: Readonly<Record<string, unknown>>): number {
  return Object.values(row).reduce(
    (sum: number, value) => sum + (typeof value === 'string' ? value.length : 0),
    0,
  )
}

/** Maximum number of tables whose names are read; one-api and new-api each have about thirty. */
export const MAX_TABLES = 200

/** Factor by which the gateway waits longer for an answer than the statement timeout of the server. */
const TIMEOUT_FACTOR = 1.05

/** Milliseconds between two checks of time and size while an answer arrives. */
const CHECK_INTERVAL_MS = 5

/**
 * Maximum ratio of all received bytes to the bytes of values. It is above 1, because rows also have headers
 * and lengths.
 */
const WIRE_FACTOR = 4

/**
 * Maximum number of bytes received without a complete row, because drivers keep an incomplete message in
 * memory.
 */
const MAX_MESSAGE_BYTES = 64 * 2 ** 20

/**
 * Maximum bytes that a server may send before it accepts the login; it has `MAX_GREETING_MS` milliseconds for
 * that.
 */
const MAX_GREETING_BYTES = 65_536
const MAX_GREETING_MS = 10_000

/**
 * Returns a function that calls `count` with the bytes of a row, and tells `wire` that a complete row has
 * arrived.
 */
export function countRowsOnWire(
  count: (bytes: number) => void,
  wire: ConnectionReadLimits,
): (bytes: number) => void {
  return (bytes) => {
    wire.noteRow()
    count(bytes)
  }
}

/** Limits on what a source server sends over one connection, even if no row is ever complete. */
export class ConnectionReadLimits {
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

  /** Records that a complete row was received. */
  noteRow(): void {
    this.#lastRowAt = this.#socket.bytesRead
  }

  /** Rejects if the server takes too long or sends too much before it accepts the login. */
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

  /** Rejects if the answer about a table takes too long or is too large. */
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

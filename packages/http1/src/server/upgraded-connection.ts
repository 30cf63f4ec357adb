import { Duplex } from 'node:stream'

/** The connection below an upgraded one: the methods that it uses. */
export interface UpgradableSource {
  /** Number of bytes received. */
  readonly bytesRead: number
  /** Sends pieces in one write; returns false if the caller should wait for the next `drain`. */
  sendParts(parts: readonly (Buffer | string)[]): boolean
  /** Pauses or resumes reading. */
  setUpgradedPaused(isPaused: boolean): void
  /** Whether the connection counts as idle, so that it may be closed to make room for another. */
  setUpgradedIdle(isIdle: boolean): void
  /** Sends what waits, then closes the sending side. */
  endUpgraded(): void
  destroy(): void
}

/**
 * The bytes of a connection whose client has changed to another protocol. Pieces that are read are copies. Reading
 * pauses while none is consumed, and writing waits for the client.
 */
export class UpgradedConnection extends Duplex {
  /** Called with each piece that arrives, before it can be read. Returns false to discard it. */
  inspect: ((bytes: Buffer) => boolean) | undefined
  /**
   * Called in place of closing the connection at once if it must make room for another one. The connection is not
   * counted any more.
   */
  onDisplaced: (() => void) | undefined
  readonly #source: UpgradableSource
  #drained: (() => void) | undefined

  constructor(source: UpgradableSource) {
    super({ allowHalfOpen: true })
    this.#source = source
  }

  /** Number of bytes received, with those of requests before the upgrade. */
  get bytesRead(): number {
    return this.#source.bytesRead
  }

  /** States whether the connection may be closed to make room for another. */
  set isIdle(isIdle: boolean) {
    this.#source.setUpgradedIdle(isIdle)
  }

  /** Adds bytes of the client; only the connection calls this. Keeps no reference to them. */
  receive(bytes: Buffer): void {
    if (this.destroyed || this.inspect?.(bytes) === false) return
    if (!this.push(Buffer.from(bytes))) this.#source.setUpgradedPaused(true)
  }

  /** Notes that the client has closed its side; only the connection calls this. */
  receiveEnd(): void {
    if (!this.destroyed) this.push(null)
  }

  /** Continues a write that waits; only the connection calls this. */
  onDrain(): void {
    const drained = this.#drained
    this.#drained = undefined
    drained?.()
  }

  override _read(): void {
    this.#source.setUpgradedPaused(false)
  }

  override _write(piece: Buffer, _: BufferEncoding, done: () => void): void {
    this.#send([piece], done)
  }

  override _writev(pieces: { chunk: Buffer }[], done: () => void): void {
    const parts = pieces.map(({ chunk }) => chunk)
    this.#send(parts, done)
  }

  override _final(done: () => void): void {
    this.#source.endUpgraded()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#drained = undefined
    this.#source.destroy()
    done(error)
  }

  #send(parts: readonly Buffer[], done: () => void): void {
    if (this.#source.sendParts(parts)) done()
    else this.#drained = done
  }
}

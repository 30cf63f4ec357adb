/** Most bytes of status line or request target, header names and values, trailers included, per message. */
export const MAX_HEAD_BYTES = 16_384
/** Most bytes before the end of a head, counting blanks, empty lines and interim responses. */
export const MAX_RAW_HEAD_BYTES = 32_768
/** Most bytes between two pieces of a chunked body: sizes, their leading zeros, extensions, trailers. */
export const MAX_FRAMING_BYTES = 16_384

/** Counts the bytes of a message outside its body; the parser skips most of them without a callback. */
export class FramingCounter {
  #bytes = 0
  #countedTo = 0

  /** Starts a new buffer: from now on, positions are within it. */
  nextBytes(): void {
    this.#countedTo = 0
  }

  /** Resets the count, and continues from `position`. */
  restartAt(position: number): void {
    this.#bytes = 0
    this.#countedTo = position
  }

  /** Counts the bytes up to `position`; returns the count since `restartAt`. */
  countTo(position: number): number {
    this.#bytes += position - this.#countedTo
    this.#countedTo = position
    return this.#bytes
  }
}

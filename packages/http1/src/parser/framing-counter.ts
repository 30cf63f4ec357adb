/**
 * Maximum number of bytes of the status line or request target plus header names and values, including
 * trailers, per message.
 */
export const MAX_HEAD_BYTES = 16_384
/**
 * Maximum number of bytes before the end of a head, including whitespace, empty lines and interim responses.
 */
export const MAX_RAW_HEAD_BYTES = 32_768
/** Maximum number of bytes between two chunks of a body: sizes, their leading zeros, extensions, trailers. */
export const MAX_FRAMING_BYTES = 16_384

/**
 * Counts the bytes of a message that do not belong to its body. The parser skips most of them without a
 * callback.
 */
export class FramingCounter {
  #bytes = 0
  #countedTo = 0

  /** Notes that positions from now on refer to a new buffer. */
  nextBytes(): void {
    this.#countedTo = 0
  }

  /** Resets the count to 0; counting continues from `position`. */
  restartAt(position: number): void {
    this.#bytes = 0
    this.#countedTo = position
  }

  /** Counts the bytes up to `position`; returns the number of bytes since the count was reset. */
  countTo(position: number): number {
    this.#bytes += position - this.#countedTo
    this.#countedTo = position
    return this.#bytes
  }
}

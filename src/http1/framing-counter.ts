/** Bytes of status line or address, header names and values, trailers included, that one message may have. */
export const MAX_HEAD_BYTES = 16_384
/** Bytes before the end of a head, with blanks, empty lines and interim answers. */
export const MAX_RAW_HEAD_BYTES = 32_768
/** Bytes between two pieces of a chunked body: sizes, their leading zeros, extensions, trailers. */
export const MAX_FRAMING_BYTES = 16_384

/**
 * Counts the bytes of a message that are no part of its body: a parser passes over most of them without a
 * word.
 */
export class FramingCounter {
  #bytes = 0
  #countedTo = 0

  /** Other bytes are at hand: positions are within them from now on. */
  nextBytes(): void {
    this.#countedTo = 0
  }

  /** Counts anew from a position. */
  restartAt(position: number): void {
    this.#bytes = 0
    this.#countedTo = position
  }

  /** Counts the bytes up to a position; tells how many there are since it was restarted. */
  countTo(position: number): number {
    this.#bytes += position - this.#countedTo
    this.#countedTo = position
    return this.#bytes
  }
}

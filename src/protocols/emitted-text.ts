const INITIAL_BYTES = 256
/** Text beyond this is counted and no longer kept: no answer is as long, and a count by bytes is good enough there. */
const MAX_BYTES = 8 * 1024 * 1024
/** Up to so many bytes a loop copies faster than a call does. */
const SHORT = 48

/** Text that grows by small pieces, kept as bytes in one piece of memory. */
export class EmittedText {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #length = 0

  /** Adds UTF-8 bytes. */
  append(source: Uint8Array, from: number, to: number): void {
    const length = this.#length
    const end = length + to - from
    if (end > MAX_BYTES) return
    if (end > this.#bytes.length) this.#grow(end)
    const bytes = this.#bytes
    if (to - from > SHORT) bytes.set(source.subarray(from, to), length)
    else for (let i = from, at = length; i < to; i++, at++) bytes[at] = source[i] as number
    this.#length = end
  }

  toString(): string {
    return this.#bytes.toString('utf8', 0, this.#length)
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

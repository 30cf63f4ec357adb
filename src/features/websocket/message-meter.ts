/** Bytes of a frame before its payload: two, the extended length, and the mask (RFC 6455, section 5.2). */
const SHORT_HEAD_BYTES = 2
const MASK_BYTES = 4
const FINAL = 0x80
const MASKED = 0x80
const OPCODE = 0x0f
/** Opcodes from here on are those of control frames, which may come between the frames of a message. */
const FIRST_CONTROL_OPCODE = 8
/** Bytes that each read and each frame of a message takes beside its own, for the object in which the library keeps it. */
const PIECE_OVERHEAD_BYTES = 256

/**
 * Average bytes of a read of a large message, below which the message is refused: the time in which the library joins
 * reads grows faster than their number.
 */
export const MIN_READ_BYTES = 1_024

/**
 * Counts the bytes of a WebSocket message that has not arrived completely, by the heads of its frames. Frames that break
 * the protocol are counted in some way, because their connection is closed.
 */
export class MessageMeter {
  /** Bytes of the unfinished message that have arrived, with the heads of its frames. */
  unfinished = 0
  /** Reads and frames of the unfinished message. */
  #pieces = 0
  readonly #head = Buffer.alloc(SHORT_HEAD_BYTES + 8 + MASK_BYTES)
  #headBytes = 0
  #payloadLeft = 0
  #endsMessage = false
  #isControl = false

  /** Memory that the unfinished message takes. */
  get heldBytes(): number {
    return this.unfinished + this.#pieces * PIECE_OVERHEAD_BYTES
  }

  /** Counts bytes that have arrived. Returns whether a message has ended among them. */
  count(bytes: Buffer): boolean {
    const before = this.unfinished
    let hasEnded = false
    let at = 0
    while (at < bytes.length) {
      if (this.#payloadLeft === 0) {
        at = this.#readHead(bytes, at)
        if (this.#headBytes > 0 || this.#payloadLeft > 0) continue
      } else {
        const size = Math.min(this.#payloadLeft, bytes.length - at)
        at += size
        this.#payloadLeft -= size
        if (!this.#isControl) this.unfinished += size
        if (this.#payloadLeft > 0) continue
      }
      if (!this.#endsMessage) continue
      this.unfinished = 0
      this.#pieces = 0
      hasEnded = true
    }
    if (this.unfinished > before || (hasEnded && this.unfinished > 0)) this.#pieces += 1
    return hasEnded
  }

  /** Reads bytes of a head; `#headBytes` is 0 again once the head is complete. */
  #readHead(bytes: Buffer, from: number): number {
    let at = from
    while (at < bytes.length && this.#headBytes < this.#headLength) {
      this.#head[this.#headBytes] = bytes[at] as number
      this.#headBytes += 1
      at += 1
    }
    const isControl = ((this.#head[0] as number) & OPCODE) >= FIRST_CONTROL_OPCODE
    if (!isControl) this.unfinished += at - from
    if (this.#headBytes < this.#headLength) return at
    this.#isControl = isControl
    if (!isControl) this.#pieces += 1
    this.#endsMessage = !isControl && ((this.#head[0] as number) & FINAL) !== 0
    this.#payloadLeft = this.#payloadLength
    this.#headBytes = 0
    return at
  }

  /** Length of the head according to the bytes that have arrived. */
  get #headLength(): number {
    if (this.#headBytes < SHORT_HEAD_BYTES) return SHORT_HEAD_BYTES
    const second = this.#head[1] as number
    return SHORT_HEAD_BYTES + extendedBytes(second) + ((second & MASKED) === 0 ? 0 : MASK_BYTES)
  }

  get #payloadLength(): number {
    const second = this.#head[1] as number
    const extended = extendedBytes(second)
    if (extended === 0) return second & ~MASKED
    return extended === 2
      ? this.#head.readUInt16BE(SHORT_HEAD_BYTES)
      : Number(this.#head.readBigUInt64BE(SHORT_HEAD_BYTES))
  }
}

function extendedBytes(second: number): 0 | 2 | 8 {
  const length = second & ~MASKED
  if (length === 126) return 2
  return length === 127 ? 8 : 0
}

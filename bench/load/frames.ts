/**
 * Reads HTTP messages with a content-length from a connection and does nothing else: the cheapest possible
 * reader.
 */
export class MessageReader {
  #pending: Buffer = Buffer.alloc(0)

  /** Calls back once for each complete message, with its first line and its body. */
  push(chunk: Buffer, complete: (firstLine: string, body: Buffer) => void): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    for (;;) {
      const headEnd = this.#pending.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const head = this.#pending.toString('latin1', 0, headEnd)
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
      // A request without a content-length has no body.
      if (length === undefined && head.startsWith('HTTP/'))
        throw new Error(`a message without a length:\n${head}`)
      const end = headEnd + 4 + Number(length ?? 0)
      if (this.#pending.length < end) return
      const body = this.#pending.subarray(headEnd + 4, end)
      this.#pending = this.#pending.subarray(end)
      complete(head.slice(0, head.indexOf('\r\n')), body)
    }
  }
}

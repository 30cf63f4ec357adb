/** Takes HTTP messages with a content-length off a connection, and nothing more: the cheapest reader there is. */
export class MessageReader {
  #pending: Buffer = Buffer.alloc(0)

  /** Calls back once for each message that is complete, with its first line. */
  push(chunk: Buffer, complete: (firstLine: string) => void): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    for (;;) {
      const headEnd = this.#pending.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const head = this.#pending.toString('latin1', 0, headEnd)
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
      if (length === undefined) throw new Error(`a message without a length:\n${head}`)
      const end = headEnd + 4 + Number(length)
      if (this.#pending.length < end) return
      this.#pending = this.#pending.subarray(end)
      complete(head.slice(0, head.indexOf('\r\n')))
    }
  }
}

/** Reads HTTP responses from a connection, one at a time, whole or in chunks, with minimum CPU time. */
export class Answers {
  #status = 0
  /** Bytes of a body of known length that are still to come; undefined for a chunked one. */
  #left: number | undefined
  #head = ''
  #tail = ''

  /** Takes bytes. Returns the status of the response that they complete, if any. */
  push(chunk: Buffer): number | undefined {
    if (this.#status === 0) {
      this.#head += chunk.toString('latin1')
      const end = this.#head.indexOf('\r\n\r\n')
      if (end === -1) return undefined
      const head = this.#head.slice(0, end)
      this.#status = Number(head.slice(9, 12))
      const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
      this.#left = length === undefined ? undefined : Number(length) - (this.#head.length - end - 4)
      this.#tail = this.#head.slice(-5)
      this.#head = ''
    } else if (this.#left === undefined) {
      this.#tail = (this.#tail + chunk.toString('latin1', Math.max(0, chunk.length - 5))).slice(-5)
    } else this.#left -= chunk.length
    const isOver = this.#left === undefined ? this.#tail === '0\r\n\r\n' : this.#left <= 0
    if (!isOver) return undefined
    const status = this.#status
    this.#status = 0
    return status
  }
}

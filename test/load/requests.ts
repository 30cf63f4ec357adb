/** Counts HTTP requests with a content-length on a connection, with minimum CPU time. */
export class Requests {
  #pending = ''
  /** Bytes of a body that are still to come. */
  #left = 0

  /** Takes bytes. Returns the number of requests that they complete. */
  push(chunk: Buffer): number {
    let complete = 0
    this.#pending += chunk.toString('latin1')
    for (;;) {
      if (this.#left > this.#pending.length) {
        this.#left -= this.#pending.length
        this.#pending = ''
        return complete
      }
      if (this.#left > 0) {
        this.#pending = this.#pending.slice(this.#left)
        this.#left = 0
        complete += 1
      }
      const end = this.#pending.indexOf('\r\n\r\n')
      if (end === -1) return complete
      const length = /\r\ncontent-length: *(\d+)/i.exec(this.#pending.slice(0, end))?.[1]
      if (length === undefined) throw new Error(`a request without a length: ${this.#pending}`)
      this.#pending = this.#pending.slice(end + 4)
      this.#left = Number(length)
      if (this.#left === 0) complete += 1
    }
  }
}

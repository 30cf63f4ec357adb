import { MARK, readStamp } from './stamp.ts'

const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = '0\r\n\r\n'

/**
 * Reads consecutive responses from a connection that carries one at a time; of the content, only the marks
 * are read.
 */
export class AnswerReader {
  /** Status of the response being read. */
  status = 0
  marks = 0
  #head: Buffer = Buffer.alloc(0)
  /** Bytes still to be received; -1 in a chunked body. */
  #left = 0
  #tail = ''

  readonly #onMark: (stamp: number) => void

  /** `onMark` is called with the stamp after each mark. */
  constructor(onMark: (stamp: number) => void = () => {}) {
    this.#onMark = onMark
  }

  /** Processes received bytes; returns true if they complete the response. */
  push(chunk: Buffer): boolean {
    let body = chunk
    if (this.status === 0) {
      this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk])
      const end = this.#head.indexOf(HEAD_END)
      if (end === -1) return false
      this.#begin(this.#head.toString('latin1', 0, end + 2))
      body = this.#head.subarray(end + 4)
      this.#head = Buffer.alloc(0)
    }
    this.#scan(body)
    if (this.#left === -1) {
      this.#tail = (this.#tail + body.toString('latin1', Math.max(0, body.length - LAST_CHUNK.length))).slice(
        -LAST_CHUNK.length,
      )
      return this.#tail === LAST_CHUNK
    }
    this.#left -= body.length
    return this.#left === 0
  }

  /** Prepares for the next response. */
  reset(): void {
    this.status = 0
    this.marks = 0
    this.#tail = ''
  }

  #begin(head: string): void {
    this.status = Number(head.slice(9, 12))
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    if (length === undefined && !/\r\ntransfer-encoding: *chunked/i.test(head))
      throw new Error(`an answer without an end:\n${head}`)
    this.#left = length === undefined ? -1 : Number(length)
  }

  #scan(body: Buffer): void {
    for (let at = body.indexOf(MARK); at !== -1; at = body.indexOf(MARK, at + 1)) {
      this.marks += 1
      const stamp = readStamp(body, at + 1)
      if (stamp !== undefined) this.#onMark(stamp)
    }
  }
}

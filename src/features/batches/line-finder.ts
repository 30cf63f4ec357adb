import { GatewayError } from '../../errors.ts'
import type { BatchLine } from './batch.ts'

/** Bytes of the content that are in memory: results are mostly near each other. */
const MAX_BYTES = 4_194_304

/** A line without its model, which is needed only to plan where it is sent. */
export type FoundLine = Omit<BatchLine, 'model'>

interface LinePlace {
  readonly at: number
  readonly bytes: number
  readonly amount: number
}

/** Finds the lines of a batch by their numbers, in any order, without having all of them in memory. */
export class LineFinder {
  readonly #partBytes: number
  readonly #part: (part: number) => Promise<Buffer | undefined>
  readonly #parts = new Map<number, Buffer>()
  readonly #lines: () => AsyncIterable<LinePlace>
  /** Position, size and hold of each line; undefined until the lines were read once. */
  #known: Promise<readonly LinePlace[]> | undefined

  /** `part` reads a part of the content; all but the last have `partBytes` bytes. */
  constructor(
    partBytes: number,
    part: (part: number) => Promise<Buffer | undefined>,
    lines: () => AsyncIterable<LinePlace>,
  ) {
    this.#partBytes = partBytes
    this.#part = part
    this.#lines = lines
  }

  async find(number: number): Promise<FoundLine | undefined> {
    this.#known ??= this.#places()
    const known = this.#known
    const places = await known.catch((error: unknown) => {
      if (this.#known === known) this.#known = undefined
      throw error
    })
    const place = places[number - 1]
    if (!place) return undefined
    const { at, bytes, amount } = place
    const before = places[number - 2]
    // The head of a line, with its `custom_id`, is between the body before it and its own.
    const start = before ? before.at + before.bytes : 0
    const stored = await this.#bytes(start, at - start + bytes)
    const [customId] = JSON.parse(stored.toString('utf8', 0, at - start)) as [customId: string]
    return { number, customId, amount, body: stored.subarray(at - start) }
  }

  async #places(): Promise<readonly LinePlace[]> {
    const places: LinePlace[] = []
    for await (const { at, bytes, amount } of this.#lines()) places.push({ at, bytes, amount })
    return places
  }

  async #bytes(at: number, length: number): Promise<Buffer> {
    const found: Buffer[] = []
    for (let from = at, missing = length; missing > 0; ) {
      const part = await this.#partWith(Math.floor(from / this.#partBytes))
      const begin = from % this.#partBytes
      const piece = part.subarray(begin, begin + missing)
      if (piece.length === 0) throw new Error('a stored content ended too early')
      found.push(piece)
      from += piece.length
      missing -= piece.length
    }
    return Buffer.concat(found)
  }

  async #partWith(index: number): Promise<Buffer> {
    const known = this.#parts.get(index)
    if (known) return known
    const part = await this.#part(index)
    if (!part) throw new GatewayError('not_found', 'this content is not kept any more')
    const [oldest] = this.#parts.keys()
    if ((this.#parts.size + 1) * this.#partBytes > MAX_BYTES && oldest !== undefined)
      this.#parts.delete(oldest)
    this.#parts.set(index, part)
    return part
  }
}

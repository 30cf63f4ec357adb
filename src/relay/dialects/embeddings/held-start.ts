import { ChunkList } from '../../../protocols/sse/chunk-list.ts'
import { HeldChunk } from '../media/held-end.ts'

/** Bytes of a response that are held: what is no longer goes to the client only when it is complete. */
const MAX_HELD_BYTES = 1_048_576

/**
 * Holds a response that is not large, so that another upstream can be asked where it is not complete, and the
 * end of any, without which no client takes it for complete.
 */
export class HeldStart {
  readonly #start = new ChunkList()
  readonly #end = new HeldChunk()
  #isLarge = false

  /** Whether the response is too large to be held: its bytes go on. */
  get isLarge(): boolean {
    return this.#isLarge
  }

  /** The bytes that go on with these. */
  push(bytes: Buffer): Buffer | undefined {
    if (this.#isLarge) return this.#end.push(bytes)
    this.#start.add(bytes)
    if (this.#start.length <= MAX_HELD_BYTES) return undefined
    this.#isLarge = true
    return this.#end.push(this.#start.take())
  }

  /** The bytes that are held. */
  rest(): Buffer {
    return this.#isLarge ? this.#end.rest() : this.#start.take()
  }
}

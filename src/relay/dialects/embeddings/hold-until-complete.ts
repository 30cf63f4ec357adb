import { ChunkList } from '@sluice/wire/sse/chunk-list'
import { HeldChunk } from '../media/withhold-end.ts'

/** A response up to this size is sent only when it is complete. */
const MAX_HELD_BYTES = 1_048_576

/**
 * Holds a small response, so that another upstream can be tried if it is incomplete. Of a large response it
 * holds the end, without which clients do not accept it as complete.
 */
export class HeldStart {
  readonly #start = new ChunkList()
  readonly #end = new HeldChunk()
  #isLarge = false

  /** Whether the response is too large to be held, so that its bytes are forwarded. */
  get isLarge(): boolean {
    return this.#isLarge
  }

  /** Adds bytes. Returns those that are forwarded now. */
  push(bytes: Buffer): Buffer | undefined {
    if (this.#isLarge) return this.#end.push(bytes)
    this.#start.add(bytes)
    if (this.#start.length <= MAX_HELD_BYTES) return undefined
    this.#isLarge = true
    return this.#end.push(this.#start.take())
  }

  /** Returns the bytes that are held. */
  rest(): Buffer {
    return this.#isLarge ? this.#end.rest() : this.#start.take()
  }
}

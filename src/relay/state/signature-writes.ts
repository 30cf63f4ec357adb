import { setTimeout as delay } from 'node:timers/promises'
import type { UserSignatures } from '../../store/operations/kept-signatures.ts'
import type { SignatureStoreParts } from './signature-store.ts'

/** Longest time that the end of a reply waits for its signatures to be known to other nodes. */
const MAX_WAIT_MS = 500
/** Characters of signatures that wait to be written; further ones are not written. */
const MAX_WAITING = 32 * 1024 * 1024

/** Replies that are written together. */
interface Batch {
  readonly replies: UserSignatures[]
  readonly written: Promise<void>
  readonly start: () => void
}

/**
 * Writes of signatures. Without other nodes, each is a part of the commit that its call's charge is written
 * with. On a shared database at most one commit is under way, and the next has all that gathers meanwhile.
 */
export class SignatureWrites {
  readonly #parts: SignatureStoreParts
  #next: Batch | undefined
  #isWriting = false
  #waiting = 0

  constructor(parts: SignatureStoreParts) {
    this.#parts = parts
  }

  /** Resolves when the signatures are durable, could not be written, or take too long; never rejects. */
  write(reply: UserSignatures): Promise<void> {
    if (!this.#parts.isShared) return this.#write([reply])
    const size = sizeOf(reply)
    if (this.#waiting + size > MAX_WAITING) {
      this.#parts.metrics.add('signatures', reply.signatures.length, 'unwritten')
      return Promise.resolve()
    }
    this.#waiting += size
    const batch = (this.#next ??= this.#newBatch())
    batch.replies.push(reply)
    this.#begin()
    return Promise.race([batch.written, delay(MAX_WAIT_MS, undefined, { ref: false })])
  }

  #newBatch(): Batch {
    const replies: UserSignatures[] = []
    const { promise, resolve } = Promise.withResolvers<void>()
    return { replies, written: promise.then(() => this.#write(replies)), start: resolve }
  }

  #begin(): void {
    const batch = this.#next
    if (this.#isWriting || !batch) return
    this.#isWriting = true
    this.#next = undefined
    batch.start()
    void batch.written.then(() => {
      this.#waiting -= batch.replies.reduce((sum, reply) => sum + sizeOf(reply), 0)
      this.#isWriting = false
      this.#begin()
    })
  }

  async #write(replies: readonly UserSignatures[]): Promise<void> {
    try {
      this.#parts.bound.note(await this.#parts.rows.write('keepSignatures', { replies }))
    } catch {
      const count = replies.reduce((sum, { signatures }) => sum + signatures.length, 0)
      this.#parts.metrics.add('signatures', count, 'unwritten')
    }
  }
}

function sizeOf({ signatures }: UserSignatures): number {
  return signatures.reduce((sum, { content }) => sum + content.length, 0)
}

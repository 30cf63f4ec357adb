import { setTimeout as delay } from 'node:timers/promises'
import type { UserSignatures } from '../../store/operations/kept-signatures.ts'
import type { SignatureStoreParts } from './signature-store.ts'

/** Maximum time that the end of a reply waits until other nodes know its signatures. */
const MAX_WAIT_MS = 500
/** Maximum characters of signatures that wait to be written; further ones are discarded. */
const MAX_WAITING = 32 * 1024 * 1024

/** Replies that are written together. */
interface Batch {
  readonly replies: UserSignatures[]
  readonly written: Promise<void>
  readonly start: () => void
}

/**
 * Writes of signatures. Without other nodes, each is part of the commit of its call's charge. On a shared
 * database at most one commit runs at a time, and the next one contains everything that gathered meanwhile.
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

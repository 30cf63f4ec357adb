import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import type { Announcer } from './change-feed.ts'

/** Maximum time to wait for the reports of other nodes. */
const WAIT_MS = 1_000
/** Time for which received reports are reused, so that concurrent readers do not multiply the messages. */
const FRESH_MS = 1_000
/**
 * Maximum number of characters of a report in one message; a PostgreSQL notification must be shorter than
 * 8,000 bytes.
 */
const CHUNK_LENGTH = 7_800
/** Maximum number of messages accepted for one node's report. */
const MAX_CHUNKS = 500
/**
 * Maximum number of bytes accepted in answer to one question, over all nodes. Both compressed and
 * decompressed bytes count.
 */
const MAX_BYTES = 32 * 1024 * 1024
/** Number of recent questions that a node remembers, so that it answers each only once. */
const REMEMBERED = 1_000

/**
 * The text of a question: its id, the node that asks, and the kind of report as `kind` or `kind:argument`.
 * Without a kind, it is `health`.
 */
const QUESTION = /^report\? ([0-9a-f-]{36}) (\S{1,100})(?: ([a-z]{1,20})(?::(\S{1,100}))?)?$/
/** The kind of report that nodes of every version can send. */
const HEALTH = 'health'
/** What precedes a chunk of a report. The chunk may be long, so it is not part of the pattern. */
const ANSWER = /^report ([0-9a-f-]{36}) (\S{1,100}) (\d{1,4}) (\d{1,4}) /

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** A question with the answers received so far. */
interface PendingQuestion {
  readonly id: string
  /** Parts of reports received so far, by node. */
  readonly chunks: Map<string, string[]>
  readonly whole: string[]
  /** Number of bytes of reports that may still be accepted. */
  left: number
  end(): void
}

/**
 * Exchanges reports between the nodes of a cluster. `report? QUESTION NODE KIND` requests a report. Each
 * other node answers with its compressed report in chunks: `report QUESTION NODE INDEX COUNT CHUNK`. Nothing
 * is stored, and nothing is sent without a request.
 */
export class NodeReports {
  readonly #node: string
  readonly #announcer: Announcer
  readonly #names: () => readonly string[]
  readonly #answered = new Set<string>()
  readonly #endListening: () => void
  readonly #reports = new Map<string, (argument: string) => Promise<string>>()
  readonly #pending = new Map<string, PendingQuestion>()
  /** Answers by question, while they are being collected or are still fresh. */
  readonly #answers = new Map<string, Promise<readonly string[]>>()

  /** `names` returns the names of the running nodes, this one included. Reports of others are not accepted. */
  constructor(node: string, announcer: Announcer, names: () => readonly string[]) {
    this.#node = node
    this.#announcer = announcer
    this.#names = names
    this.#endListening = announcer.listen({ received: (text) => this.#onText(text) })
  }

  /** Sets the function that creates reports of one kind on this node. */
  answerWith(report: (argument: string) => Promise<string>, kind = HEALTH): void {
    this.#reports.set(kind, report)
  }

  /** Resolves to the reports of the other nodes that answer within a second, in any order. */
  others(question = HEALTH): Promise<readonly string[]> {
    const known = this.#answers.get(question)
    if (known) return known
    const answers = this.#ask(question)
    this.#answers.set(question, answers)
    return answers
  }

  close(): void {
    this.#endListening()
    for (const pending of this.#pending.values()) pending.end()
  }

  async #ask(question: string): Promise<readonly string[]> {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const pending: PendingQuestion = { id: randomUUID(), chunks: new Map(), whole: [], left: MAX_BYTES, end }
    setTimeout(() => this.#answers.delete(question), WAIT_MS + FRESH_MS).unref()
    if (this.#names().length < 2) return []
    this.#pending.set(pending.id, pending)
    const timer = setTimeout(end, WAIT_MS).unref()
    this.#announcer
      .announce(`report? ${pending.id} ${this.#node}${question === HEALTH ? '' : ` ${question}`}`)
      .catch(end)
    await ended
    clearTimeout(timer)
    this.#pending.delete(pending.id)
    return textsOf(pending)
  }

  #onText(text: string): void {
    const [, question, asker, kind = HEALTH, argument = ''] = QUESTION.exec(text) ?? []
    if (question !== undefined && asker !== this.#node && this.#isNew(question))
      void this.#answer(question, kind, argument).catch(() => {})
    const [head = '', id, node = '', index, count] = ANSWER.exec(text) ?? []
    const pending = id === undefined ? undefined : this.#pending.get(id)
    if (!pending || !this.#names().includes(node)) return
    const chunk = text.slice(head.length)
    this.#onChunk(pending, node, { index: Number(index), count: Number(count), chunk })
  }

  #isNew(question: string): boolean {
    if (this.#answered.has(question)) return false
    this.#answered.add(question)
    for (const oldest of this.#answered) {
      if (this.#answered.size <= REMEMBERED) break
      this.#answered.delete(oldest)
    }
    return true
  }

  async #answer(question: string, kind: string, argument: string): Promise<void> {
    const report = this.#reports.get(kind)
    if (!report) return
    const packed = (await deflate(await report(argument))).toString('base64')
    const count = Math.ceil(packed.length / CHUNK_LENGTH)
    for (let index = 0; index < count; index += 1) {
      const chunk = packed.slice(index * CHUNK_LENGTH, (index + 1) * CHUNK_LENGTH)
      await this.#announcer.announce(`report ${question} ${this.#node} ${index} ${count} ${chunk}`)
    }
  }

  // The parts of a node's report arrive in order, because they come over one connection.
  #onChunk(
    pending: PendingQuestion,
    node: string,
    { index, count, chunk }: { readonly index: number; readonly count: number; readonly chunk: string },
  ): void {
    const chunks = pending.chunks.get(node) ?? []
    if (index !== chunks.length || count > MAX_CHUNKS || chunk.length > pending.left) return
    pending.left -= chunk.length
    chunks.push(chunk)
    pending.chunks.set(node, chunks)
    if (index + 1 < count) return
    pending.whole.push(chunks.join(''))
    if (pending.whole.length >= this.#names().length - 1) pending.end()
  }
}

// Decompresses one report after the other, because they share the limit on bytes.
async function textsOf(pending: PendingQuestion): Promise<readonly string[]> {
  const texts: string[] = []
  for (const chunks of pending.whole) {
    try {
      const bytes = await inflate(Buffer.from(chunks, 'base64'), {
        maxOutputLength: Math.max(1, pending.left),
      })
      pending.left -= bytes.length
      texts.push(bytes.toString())
    } catch {
      // Ignores a report that exceeds the remaining bytes or is not a compressed text.
    }
  }
  return texts
}

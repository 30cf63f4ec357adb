import type { Response, ResponseHeaders } from '@sluice/http1'
import type { AnswerKind, KeptEntry, KeptFacts, KeptFilter } from '../../domain/kept.ts'
import type { StoreRead } from '../../limits/store-reads.ts'
import type { KeptStore } from '../../store/kept-store.ts'
import type { RowStore } from '../../store/store.ts'
import type { AnswerHead } from '../../call/answers/answer-recorder.ts'

/**
 * Bytes of memory allocated to read and decrypt one part of an answer: `MEMORY_PER_BYTE` for each byte of the
 * answer, but at most this many.
 */
const MAX_PART_MEMORY = 655_360
const MEMORY_PER_BYTE = 2.5

/** A kept answer without its body. `facts` are the facts that its kind defines, without the head. */
export interface KeptAnswer extends KeptEntry {
  readonly head: AnswerHead
}

/** An answer to be kept, with its body in pieces of any size. */
export interface AnswerToKeep extends KeptFacts {
  readonly kind: AnswerKind
  readonly head: AnswerHead
  readonly pieces: readonly Buffer[]
}

/** Which answers are removed: those that match all given fields. */
interface AnswerFilter extends Omit<KeptFilter, 'key' | 'keys' | 'except'> {
  readonly kind: AnswerKind
}

/** A running call whose answer may be kept. */
export interface CallToKeep extends Required<AnswerFilter> {
  /** Called when answers with this kind, user, token and model are removed. */
  readonly onRemoved?: () => void
}

/** State of a running call whose answer may be kept. */
export interface KeepingCall {
  /** True if this process knows that answers like it were removed since the call began. */
  readonly isRemoved: boolean
  /** Number of the last removal of any answers before the call began; undefined if it could not be read. */
  readonly lastRemoval: number | undefined
  /** Must be called when the call is over, whether or not its answer was kept. */
  end(): void
}

/** First word of the announcements by which processes inform each other of removals. */
const REMOVED = 'answers-removed'

/** Sends texts to all processes on the same database, including this one. */
interface Announcer {
  announce(text: string): Promise<void> | void
  listen(listener: { received(text: string): void }): unknown
}

/** Services that the store of answers needs. */
interface KeptAnswersDependencies {
  readonly rows: Pick<RowStore, 'read' | 'write'>
  readonly kept: KeptStore
  /** Absent if there are no other processes. */
  readonly announcer?: Announcer | undefined
}

/** Keeps answers, so that they can be given again. All nodes share them. */
export class KeptAnswers {
  readonly #rows: KeptAnswersDependencies['rows']
  readonly #kept: KeptStore
  readonly #announcer: KeptAnswersDependencies['announcer']
  readonly #underWay = new Set<CallToKeep & { isRemoved: boolean }>()

  constructor({ rows, kept, announcer }: KeptAnswersDependencies) {
    this.#announcer = announcer
    announcer?.listen({ received: (text) => this.#heard(text) })
    this.#rows = rows
    this.#kept = kept
  }

  /**
   * Stores an answer, replacing one with the same key. Resolves to false if there is no room for it,
   * or if any process removed answers like it since its call began: the write that stores the answer checks
   * that. Rejects if the database is unavailable.
   */
  async keep({ head, facts, pieces, ...answer }: AnswerToKeep, call?: KeepingCall): Promise<boolean> {
    if (call && (call.isRemoved || call.lastRemoval === undefined)) return false
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (!this.#kept.admits(answer.kind, bytes)) return false
    const removals = call?.lastRemoval === undefined ? {} : { lastRemoval: call.lastRemoval }
    const entry = { ...answer, ...removals, facts: JSON.stringify({ head, facts }) }
    return (await this.#kept.write(entry, pieces)) && !call?.isRemoved
  }

  /** Registers a call whose answer may be kept. Removals during the call apply to its answer too. Never rejects. */
  async begin(call: CallToKeep): Promise<KeepingCall> {
    const underWay = { ...call, isRemoved: false }
    this.#underWay.add(underWay)
    const lastRemoval = await this.#rows.read('lastAnswerRemoval').catch(() => undefined)
    return {
      lastRemoval,
      get isRemoved() {
        return underWay.isRemoved
      },
      end: () => void this.#underWay.delete(underWay),
    }
  }

  #removedUnderWay({ kind, userId, tokenId, model }: AnswerFilter): void {
    for (const call of this.#underWay) {
      const isOther =
        call.kind !== kind ||
        (userId ?? call.userId) !== call.userId ||
        (tokenId ?? call.tokenId) !== call.tokenId ||
        (model ?? call.model) !== call.model
      if (isOther || call.isRemoved) continue
      call.isRemoved = true
      call.onRemoved?.()
    }
  }

  #heard(text: string): void {
    if (!text.startsWith(`${REMOVED} `)) return
    this.#removedUnderWay(JSON.parse(text.slice(REMOVED.length + 1)) as AnswerFilter)
  }

  /** Finds an answer that has not expired, without its body. `userId`: who asks for it. */
  async find(kind: AnswerKind, key: string, userId: number): Promise<KeptAnswer | undefined> {
    const entry = await this.#kept.find(kind, key, userId)
    return entry && { ...entry, ...(JSON.parse(entry.facts) as Pick<KeptAnswer, 'head' | 'facts'>) }
  }

  /**
   * Finds an answer and reads its body, unless `isRead` says that the body is not wanted. If the answer is replaced in
   * between, the new one is read. Resolves to undefined if there is none, or if its body cannot be read.
   */
  async read(
    place: { readonly kind: AnswerKind; readonly key: string; readonly userId: number },
    read: StoreRead,
    isRead: (answer: KeptAnswer) => boolean,
  ): Promise<{ readonly answer: KeptAnswer; readonly pieces?: readonly Buffer[] } | undefined> {
    for (let replaced: KeptAnswer | undefined; ; ) {
      const answer = await this.find(place.kind, place.key, place.userId)
      if (!answer || answer.contentId === replaced?.contentId) return undefined
      if (!isRead(answer)) return { answer }
      const pieces = await this.pieces(answer, read).catch(() => undefined)
      if (pieces) return { answer, pieces }
      replaced = answer
    }
  }

  /** Reads the whole body, as `parts` does. */
  async pieces(answer: KeptAnswer, read: StoreRead): Promise<Buffer[]> {
    const pieces: Buffer[] = []
    for await (const part of this.parts(answer, read)) pieces.push(part)
    return pieces
  }

  /**
   * Yields the body part by part. Before the first part is read, memory for one part is taken from the
   * client's share. Throws `not_found` if the body has been removed.
   */
  async *parts(answer: KeptAnswer, read: StoreRead): AsyncGenerator<Buffer, void, undefined> {
    if (answer.parts === 0) return
    await read.begin()
    await read.hold(Math.min(MAX_PART_MEMORY, Math.ceil(answer.bytes * MEMORY_PER_BYTE)))
    yield* this.#kept.stream(answer)
  }

  /**
   * Sends an answer at the speed at which the client reads it. `headers` are added to the answer's own.
   * `begin` is awaited after the first part was read and before anything is sent. Rejects if the first part
   * cannot be read, or with the error of `begin`. If a later part cannot be read, the connection is closed.
   */
  async send(
    answer: KeptAnswer,
    response: Response,
    read: StoreRead,
    { headers: further, begin }: { readonly headers: ResponseHeaders; readonly begin?: () => Promise<void> },
  ): Promise<void> {
    const { status, headers } = answer.head
    const writeHead = async (): Promise<void> => {
      await begin?.()
      response.writeHead(status, { ...headers, ...further })
    }
    const stopReading = response.onClosed(() => read.end())
    try {
      for await (const bytes of this.parts(answer, read)) {
        if (response.isAborted) return
        if (!response.headersSent) await writeHead()
        if (!response.write(bytes)) await responseDrained(response)
      }
      if (!response.headersSent) await writeHead()
      response.end()
    } catch (error) {
      if (!response.headersSent) throw error
      response.destroy()
    } finally {
      stopReading()
      read.end()
    }
  }

  /**
   * Removes the answers that match the filter, and prevents running calls that match from keeping theirs, in all
   * processes. Resolves to the number of removed answers.
   */
  async remove(filter: AnswerFilter): Promise<number> {
    this.#removedUnderWay(filter)
    await this.#rows.write('recordAnswerRemoval', { ...filter, nowMs: Date.now() })
    // In a process that cannot be reached, later calls still wait for running ones; those do not keep their
    // answers either.
    await Promise.resolve(this.#announcer?.announce(`${REMOVED} ${JSON.stringify(filter)}`)).catch(() => {})
    return this.#kept.remove(filter)
  }
}

/** Resolves when the client has read what was written, or has disconnected. */
function responseDrained(response: Response): Promise<void> {
  return new Promise((resolve) => {
    const unwatch = response.onClosed(resolve)
    response.whenDrained(() => {
      unwatch()
      resolve()
    })
  })
}

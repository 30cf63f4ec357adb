import type { Response, ResponseHeaders } from '@sluice/http1'
import { type AnswerKind, dayOf, type KeptAnswer, type RemovalFilter } from '../../domain/kept-answer.ts'
import { GatewayError } from '../../errors.ts'
import type { StoreRead } from '../../limits/store-reads.ts'
import { AnswerContents, type AnswerToStore } from '../../store/answer-contents.ts'
import type { Rows } from '../../store/store.ts'
import { drained } from './drained.ts'
import type { StorageLimit } from '../responses/storage-limit.ts'

/** Memory for one part while it is read, as it is stored and decrypted: at most so much, and for each byte. */
const MAX_PART_MEMORY = 655_360
const MEMORY_PER_BYTE = 2.5
/** Rows that one write removes. */
const REMOVED_AT_A_TIME = 20

/** A call under way, whose answer may be kept. */
export interface CallToKeep extends Required<RemovalFilter> {
  /** Called when answers like its own are removed. */
  readonly onRemoved?: () => void
}

/** A call whose answer may be kept, unless answers like it are removed while it is under way. */
export interface KeepingCall {
  /** Whether this process knows of such a removal. */
  readonly isRemoved: boolean
  /** The last removal before it began, here or elsewhere; undefined if that is unknown. */
  readonly lastRemoval: number | undefined
  /** The call is over, and its answer is kept or not. */
  end(): void
}

/** First word of what processes tell each other of removals. */
const REMOVED = 'answers-removed'

/** Tells all processes on the same database, this one included. */
interface Announcer {
  announce(text: string): Promise<void> | void
  listen(listener: { received(text: string): void }): unknown
}

/** Services that the store of answers needs. */
interface KeptAnswersDependencies {
  readonly rows: Pick<Rows, 'read' | 'write'>
  /** Limits of what is kept, by kind. */
  readonly bounds: Readonly<Record<AnswerKind, StorageLimit>>
  /** Absent if there is no other process. */
  readonly announcer?: Announcer | undefined
}

/** Answers that are kept to be given again, encrypted and within bounds. Every node sees the same. */
export class KeptAnswers {
  readonly #rows: KeptAnswersDependencies['rows']
  readonly #bounds: KeptAnswersDependencies['bounds']
  readonly #contents: AnswerContents
  readonly #announcer: KeptAnswersDependencies['announcer']
  readonly #underWay = new Set<CallToKeep & { isRemoved: boolean }>()

  constructor({ rows, bounds, announcer }: KeptAnswersDependencies) {
    this.#announcer = announcer
    announcer?.listen({ received: (text) => this.#heard(text) })
    this.#rows = rows
    this.#bounds = bounds
    this.#contents = new AnswerContents(rows)
  }

  /**
   * Stores an answer; one that is found by the same lookup is replaced. Resolves to false if there is no room
   * for it, or if answers like it were removed since its call began, by any process: the write that stores it checks
   * that. Rejects if the database is unavailable.
   */
  async keep(answer: AnswerToStore, call?: KeepingCall): Promise<boolean> {
    const bound = this.#bounds[answer.kind]
    const bytes = answer.pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (call && (call.isRemoved || call.lastRemoval === undefined)) return false
    if (!bound.admits('responses', bytes)) return false
    const lastRemoval = call?.lastRemoval
    const sum = await this.#contents.store({ ...answer, ...(lastRemoval !== undefined && { lastRemoval }) })
    if (sum) bound.note([sum])
    return sum !== undefined && !call?.isRemoved
  }

  /** A call begins whose answer may be kept: what is removed meanwhile applies to it too. Never rejects. */
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

  #removedUnderWay({ kind, userId, tokenId, model }: RemovalFilter): void {
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
    this.#removedUnderWay(JSON.parse(text.slice(REMOVED.length + 1)) as RemovalFilter)
  }

  /** An answer that has not expired, without its content. */
  async find(kind: AnswerKind, lookup: string): Promise<KeptAnswer | undefined> {
    return (await this.#rows.read('findAnswer', { kind, lookup, nowMs: Date.now() })) ?? undefined
  }

  /**
   * The content, part by part. Memory for a part is taken from the client's share before it is read. Rejects
   * with `not_found` if the content was removed meanwhile.
   */
  async *parts(
    { answerId, parts, bytes: size, expiresMs }: KeptAnswer,
    read: StoreRead,
  ): AsyncGenerator<Buffer, void, undefined> {
    if (parts === 0) return
    await read.begin()
    await read.hold(Math.min(MAX_PART_MEMORY, Math.ceil(size * MEMORY_PER_BYTE)))
    for (let part = 0; part < parts; part += 1) {
      const bytes = await this.#rows.read('readAnswerPart', { day: dayOf(expiresMs), answerId, part })
      if (!bytes) throw new GatewayError('not_found', 'this answer is not kept any more')
      yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    }
  }

  /**
   * Sends an answer, no faster than its client reads it. `headers`: in addition to the answer's own; `begin` is awaited
   * before anything is sent, once the first part was read. Rejects if that part cannot be read, or with the error of
   * `begin`; breaks the response off if a later part cannot be read.
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
        if (!response.write(bytes)) await drained(response)
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
   * Removes the answers to which all that is given applies, and forbids keeping those of calls under way, in all
   * processes. Resolves to the number of removed ones.
   */
  async remove(filter: RemovalFilter): Promise<number> {
    this.#removedUnderWay(filter)
    await this.#rows.write('recordAnswerRemoval', { ...filter, nowMs: Date.now() })
    // In a process that is out of reach, later calls wait for those under way; their answers are not kept either.
    await Promise.resolve(this.#announcer?.announce(`${REMOVED} ${JSON.stringify(filter)}`)).catch(() => {})
    for (let count = 0; ; ) {
      const removed = await this.#rows.write('removeAnswers', { ...filter, limit: REMOVED_AT_A_TIME })
      count += removed
      if (removed === 0) return count
    }
  }
}

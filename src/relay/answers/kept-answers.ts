import type { Response, ResponseHeaders } from '@sluice/http1'
import { type AnswerKind, dayOf, type KeptAnswer, type RemovalFilter } from '../../domain/kept-answer.ts'
import { GatewayError } from '../../errors.ts'
import type { StoreRead } from '../../limits/store-reads.ts'
import { AnswerContents, type AnswerToStore } from '../../store/answer-contents.ts'
import type { RowStore } from '../../store/store.ts'
import { responseDrained } from './response-drained.ts'
import type { StorageLimit } from '../responses/storage-limit.ts'

/**
 * Bytes of memory allocated to read and decrypt one part of an answer: `MEMORY_PER_BYTE` for each byte of the
 * answer, but at most this many.
 */
const MAX_PART_MEMORY = 655_360
const MEMORY_PER_BYTE = 2.5
/** Maximum number of rows that one write removes. */
const REMOVED_AT_A_TIME = 20

/** A running call whose answer may be kept. */
export interface CallToKeep extends Required<RemovalFilter> {
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
  /** Storage limits, by kind of answer. */
  readonly bounds: Readonly<Record<AnswerKind, StorageLimit>>
  /** Absent if there are no other processes. */
  readonly announcer?: Announcer | undefined
}

/** Stores answers, encrypted and within limits, so that they can be given again. All nodes share them. */
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
   * Stores an answer, replacing one with the same lookup key. Resolves to false if there is no room for it,
   * or if any process removed answers like it since its call began: the write that stores the answer checks
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

  /** Finds an answer that has not expired, without its content. */
  async find(kind: AnswerKind, lookup: string): Promise<KeptAnswer | undefined> {
    return (await this.#rows.read('findAnswer', { kind, lookup, nowMs: Date.now() })) ?? undefined
  }

  /**
   * Yields the content part by part. Before the first part is read, memory for one part is taken from the
   * client's share. Throws `not_found` if the content has been removed.
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
  async remove(filter: RemovalFilter): Promise<number> {
    this.#removedUnderWay(filter)
    await this.#rows.write('recordAnswerRemoval', { ...filter, nowMs: Date.now() })
    // In a process that cannot be reached, later calls still wait for running ones; those do not keep their
    // answers either.
    await Promise.resolve(this.#announcer?.announce(`${REMOVED} ${JSON.stringify(filter)}`)).catch(() => {})
    for (let count = 0; ; ) {
      const removed = await this.#rows.write('removeAnswers', { ...filter, limit: REMOVED_AT_A_TIME })
      count += removed
      if (removed === 0) return count
    }
  }
}

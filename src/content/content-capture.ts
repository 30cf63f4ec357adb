import type { OutgoingBody } from '@sluice/http1'
import type { ContentPolicy } from '../domain/content-log.ts'
import { GrowingBytes } from './growing-bytes.ts'
import type { ContentBytes } from './parts.ts'

/** A call whose content (request and answer) may be kept. */
export interface CapturableCall {
  readonly id: string
  readonly userId: number
  readonly tokenId: number
  /** Start of the call in Unix milliseconds. */
  readonly startedMs: number
}

/** A call whose content is kept, and how much of it for how long. */
export interface CapturedCall extends CapturableCall, ContentPolicy {}

/** Minimum number of bytes that are reserved at a time, so that most calls reserve memory only once. */
const MIN_TAKEN = 6_144

/**
 * Why content of a call is not kept. `full`: no memory was left. `failed`: it could not be written.
 * `unscreened`: a part could not be searched for secrets; only that part is missing.
 */
export type DropReason = 'full' | 'failed' | 'unscreened'

/** The queue of content that is waiting to be written. It counts the memory that running calls hold. */
export interface CaptureQueue {
  /** Reserves memory for a call; returns false if its user's share, or the total, is used up. */
  take(call: CapturableCall, bytes: number): boolean
  give(call: CapturableCall, bytes: number): void
  /** Adds the content of a call. `bytes` of memory are already reserved for it. */
  add(call: CapturedCall, content: ContentBytes, bytes: number): void
  dropped(reason: DropReason): void
}

/**
 * Collects the content of one call while it runs. It never delays the call or throws: if no memory is left,
 * the content is dropped and counted. `docs/api.md: Content log`.
 */
export class ContentCapture {
  readonly #call: CapturableCall
  readonly #queue: CaptureQueue
  readonly #decide: () => ContentPolicy | undefined
  readonly #requestReceived: Buffer | undefined
  readonly #shown: ((answer: Buffer) => Buffer) | undefined
  #requestSent: Buffer | undefined
  /** What is kept of the call, and for how long; known once the call is settled. */
  #policy: ContentPolicy | undefined
  #answerReceived = new GrowingBytes()
  /** The answer sent to the client; undefined as long as it equals the answer received from the upstream. */
  #answerSent: GrowingBytes | undefined
  /** Number of bytes of the sent answer that equal the received one so far. */
  #equalBytes = 0
  /** Bytes of memory that are reserved, and how many of them are still unused. */
  #taken = 0
  #spare = 0
  #isOver = false
  #isRelayed = false
  #isClosed = false
  /** Called once at the end with what is kept of the call, or with undefined if nothing is. */
  onOver: ((content: ContentBytes | undefined, policy: ContentPolicy | undefined) => void) | undefined
  readonly #take = (bytes: number): boolean => {
    if (bytes > this.#spare) {
      const more = Math.max(bytes - this.#spare, MIN_TAKEN)
      if (!this.#queue.take(this.#call, more)) return false
      this.#taken += more
      this.#spare += more
    }
    this.#spare -= bytes
    return true
  }

  /**
   * `requestReceived` is undefined if the request body is not in memory. `decide` is called once the call is
   * settled, because only then its group is known: a fallback may belong to another group. `shown` puts an answer into the
   * form in which the client gets it; absent if that is the form in which it is noted.
   */
  constructor(
    call: CapturableCall,
    queue: CaptureQueue,
    requestReceived: Buffer | undefined,
    decide: () => ContentPolicy | undefined,
    shown?: (answer: Buffer) => Buffer,
  ) {
    this.#call = call
    this.#queue = queue
    this.#requestReceived = requestReceived
    this.#decide = decide
    this.#shown = shown
  }

  /** Whether a listener has been set as `onOver` and was not called yet. */
  get isAwaited(): boolean {
    return this.onOver !== undefined && !this.#isOver
  }

  /** Begins an attempt, and forgets the answer of an earlier one, which was not delivered. */
  beginAttempt(): void {
    if (this.#isOver) return
    this.#requestSent = undefined
    this.#spare += this.#answerReceived.capacity
    this.#answerReceived = new GrowingBytes()
  }

  /**
   * Notes a request body as it is sent to the upstream. A body that follows an answer in the same attempt is
   * appended to the previous body.
   */
  readonly onBody = (body: Buffer | OutgoingBody): void => {
    if (this.#isOver) return
    const bytes = Buffer.isBuffer(body) ? body : body.whole?.()
    if (!bytes) return
    const before = this.#answerReceived.length > 0 ? this.#requestSent : undefined
    this.#requestSent = before ? Buffer.concat([before, bytes]) : bytes
  }

  /** Notes bytes of the upstream's answer, as received. */
  answerReceived(chunk: Buffer): void {
    if (!this.#isOver && !this.#answerReceived.add(chunk, this.#take)) this.#drop('full')
  }

  /** Notes bytes of the answer, as sent to the client. */
  onPiece(piece: Buffer): void {
    if (this.#isOver) return
    if (!this.#answerSent) {
      if (this.#answerReceived.hasAt(this.#equalBytes, piece)) {
        this.#equalBytes += piece.length
        return
      }
      this.#answerSent = new GrowingBytes()
      const equal = this.#answerReceived.bytes.subarray(0, this.#equalBytes)
      if (!this.#answerSent.add(equal, this.#take)) return this.#drop('full')
    }
    if (!this.#answerSent.add(piece, this.#take)) this.#drop('full')
  }

  /**
   * Notes that the relay has settled the call. From now on the queue's memory limit counts the request body.
   */
  relayed(): void {
    if (this.#isOver || this.#isRelayed) return
    this.#isRelayed = true
    this.#policy = this.#decide()
    if (!this.#policy) return this.forget()
    const received = this.#requestReceived
    const sent = this.#requestSent
    if (sent === received || (sent && received && sent.equals(received))) this.#requestSent = undefined
    const bytes = (received?.length ?? 0) + (this.#requestSent?.length ?? 0)
    if (!this.#take(1 + bytes)) return this.#drop('full')
    this.#finish()
  }

  /** Notes that the answer was sent completely, or that the client disconnected. */
  closed(): void {
    this.#isClosed = true
    this.#finish()
  }

  /** Drops the content on purpose, so that it is not counted as lost. */
  forget(): void {
    if (!this.#isOver) this.#end()
  }

  #finish(): void {
    const policy = this.#policy
    if (this.#isOver || !this.#isClosed || !policy) return
    const [received, sent] = [this.#requestReceived, this.#requestSent]
    const answer = this.#answerReceived.bytes
    const noted = this.#answerSent?.bytes ?? answer.subarray(0, this.#equalBytes)
    const answered = this.#shown ? this.#shown(noted) : noted
    if (answered !== noted && !this.#take(answered.length)) return this.#drop('full')
    this.#isOver = true
    const isDelivered = !this.#answerSent && answered === noted && this.#equalBytes === answer.length
    const content: ContentBytes = {
      ...(received && { request_received: received }),
      ...(sent && { request_sent: sent }),
      ...(answer.length > 0 && { answer_received: answer }),
      ...(!isDelivered && { answer_sent: answered }),
    }
    this.#queue.add({ ...this.#call, ...policy }, content, this.#taken)
    this.onOver?.(content, policy)
  }

  #drop(reason: DropReason): void {
    this.#end()
    this.#queue.dropped(reason)
  }

  #end(): void {
    this.#isOver = true
    this.#queue.give(this.#call, this.#taken)
    this.#taken = 0
    this.#spare = 0
    this.#requestSent = undefined
    this.#answerReceived = new GrowingBytes()
    this.#answerSent = undefined
    this.onOver?.(undefined, undefined)
  }
}

import type { OutgoingBody } from '@sluice/http1'
import type { ContentPolicy } from '../domain/content-log.ts'
import { GrowingBytes } from './growing-bytes.ts'
import type { ContentBytes } from './parts.ts'

/** A call whose content may be kept. */
export interface CapturableCall {
  readonly id: string
  readonly userId: number
  readonly tokenId: number
  /** Unix milliseconds. */
  readonly startedMs: number
}

/** A call whose content is kept. */
export interface CapturedCall extends CapturableCall, ContentPolicy {}

/** Memory is taken in pieces of at least this many bytes: most calls need one. */
const MIN_TAKEN = 6_144

/**
 * Why content of a call is not kept: no memory was left, it could not be written, or a part of it could not be
 * screened, and only that part is missing.
 */
export type DropReason = 'full' | 'failed' | 'unscreened'

/** The queue behind captures: counts what they hold, and takes what is complete. */
export interface CaptureQueue {
  /** Takes memory for a call; false if its share, or the whole, is used up. */
  take(call: CapturableCall, bytes: number): boolean
  give(call: CapturableCall, bytes: number): void
  /** Adds the content of a call, whose memory is already taken. */
  add(call: CapturedCall, content: ContentBytes, bytes: number): void
  dropped(reason: DropReason): void
}

/**
 * Content of one call while it runs. Nothing here waits or throws: where no memory is left, the content of the
 * call is dropped, and counted. `docs/api.md: Content log`.
 */
export class ContentCapture {
  readonly #call: CapturableCall
  readonly #queue: CaptureQueue
  readonly #decide: () => ContentPolicy | undefined
  readonly #requestReceived: Buffer | undefined
  #requestSent: Buffer | undefined
  /** What is kept; known once the call is settled. */
  #policy: ContentPolicy | undefined
  #answerReceived = new GrowingBytes()
  /** The answer as sent, from the byte on at which it differs from the one received. */
  #answerSent: GrowingBytes | undefined
  /** Bytes of the answer as sent that equal the one received. */
  #equalBytes = 0
  /** Bytes of memory that are taken, and those of them that nothing needs yet. */
  #taken = 0
  #spare = 0
  #isOver = false
  #isRelayed = false
  #isClosed = false
  /** Called once with what is kept of the call and how; with undefined if nothing is. */
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
   * `requestReceived` is undefined if it is not in memory. `decide` is called once the call is settled, because it
   * may be served by another group than it began with.
   */
  constructor(
    call: CapturableCall,
    queue: CaptureQueue,
    requestReceived: Buffer | undefined,
    decide: () => ContentPolicy | undefined,
  ) {
    this.#call = call
    this.#queue = queue
    this.#requestReceived = requestReceived
    this.#decide = decide
  }

  /** Whether `onOver` is still to be called. */
  get isAwaited(): boolean {
    return this.onOver !== undefined && !this.#isOver
  }

  /** Begins an attempt: what an earlier one received was not delivered. */
  beginAttempt(): void {
    if (this.#isOver) return
    this.#requestSent = undefined
    this.#spare += this.#answerReceived.capacity
    this.#answerReceived = new GrowingBytes()
  }

  /** Notes a request as it is sent. A further one after an answer is added to the former. */
  readonly onBody = (body: Buffer | OutgoingBody): void => {
    if (this.#isOver) return
    const bytes = Buffer.isBuffer(body) ? body : body.whole?.()
    if (!bytes) return
    const before = this.#answerReceived.length > 0 ? this.#requestSent : undefined
    this.#requestSent = before ? Buffer.concat([before, bytes]) : bytes
  }

  /** Notes bytes of the upstream's answer. */
  answerReceived(chunk: Buffer): void {
    if (!this.#isOver && !this.#answerReceived.add(chunk, this.#take)) this.#drop('full')
  }

  /** Notes bytes of the answer to the client. */
  answerSent(piece: Buffer): void {
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

  /** Notes that the relay has settled the call. From now on the request's memory is the queue's. */
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

  /** Notes that the answer was sent, or that the client left. */
  closed(): void {
    this.#isClosed = true
    this.#finish()
  }

  /** Keeps nothing of the call, which is no loss. */
  forget(): void {
    if (!this.#isOver) this.#end()
  }

  #finish(): void {
    const policy = this.#policy
    if (this.#isOver || !this.#isClosed || !policy) return
    this.#isOver = true
    const [received, sent] = [this.#requestReceived, this.#requestSent]
    const answer = this.#answerReceived.bytes
    const answered = this.#answerSent?.bytes ?? answer.subarray(0, this.#equalBytes)
    const isDelivered = !this.#answerSent && this.#equalBytes === answer.length
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

import { type EarlyHead, Response, type ResponseHeaders } from '@sluice/http1'

/** HTTP status and headers of an answer. */
export interface AnswerHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** Receives the bytes of an answer that a call writes to an `AnswerRecorder`. */
interface Recording {
  begin(head: AnswerHead): void
  /** Returns false if the writer should pause until `onDrain`. */
  write(piece: Buffer): boolean
  /**
   * `finished` must be called once the clients have read the answer. Until then, the call holds memory for it.
   */
  complete(finished: () => void): void
  breakOff(): void
  needsUpstream(): void
  /** Sends bytes to those who wait for the answer; they are no part of it. */
  keepAlive(bytes: Buffer, head: EarlyHead): void
}

/** A connection that accepts everything and sends it nowhere. */
export const DISCARDING_CONNECTION = {
  isOpen: true,
  send: () => true,
  sendParts: () => true,
  responseEnded() {},
  needsUpstream() {},
  destroy() {},
} as const
/** Facts about the request for a response without a client. */
export const NO_TRAITS = { method: 'POST', version: '1.1', keepAlive: false, headers: {} } as const

/** A response whose content is recorded instead of sent. The relay writes to it as to any other response. */
export class AnswerRecorder extends Response {
  readonly #recording: Recording
  #hasRecordedEnd = false

  constructor(recording: Recording) {
    super(DISCARDING_CONNECTION, NO_TRAITS)
    this.#recording = recording
  }

  override get hasEnded(): boolean {
    return this.#hasRecordedEnd
  }

  override writeHead(status: number, headers: ResponseHeaders): this {
    this.#recording.begin({ status, headers: { ...this.presetHeaders, ...headers } })
    return super.writeHead(status, headers)
  }

  override write(piece: Buffer): boolean {
    return this.#isOver || this.#record(piece)
  }

  override end(rest?: Buffer | string, before?: Buffer): void {
    if (this.#isOver) return
    this.#hasRecordedEnd = true
    if (before) this.#record(before)
    if (rest !== undefined) this.#record(typeof rest === 'string' ? Buffer.from(rest) : rest)
    this.#recording.complete(() => this.onConnectionEnd('finished'))
  }

  override needsUpstream(): void {
    if (!this.#isOver) this.#recording.needsUpstream()
  }

  override keepAlive(bytes: Buffer, head: EarlyHead): void {
    if (this.#isOver) return
    if (!this.headersSent) this.early ??= head
    this.#recording.keepAlive(bytes, head)
  }

  override destroy(): void {
    if (this.#isOver) return
    this.onConnectionEnd('aborted')
    this.#recording.breakOff()
  }

  #record(piece: Buffer): boolean {
    this.observer?.onPiece(piece)
    return this.#recording.write(piece)
  }

  get #isOver(): boolean {
    return this.#hasRecordedEnd || this.isAborted
  }
}

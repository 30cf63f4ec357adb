import type { Socket } from 'node:net'
import type { OutgoingBody } from './outgoing-body.ts'

/** Receiver of the progress of a body. Nothing is called after `stop`. */
interface SendingListener {
  /** The upstream took more bytes. */
  onProgress(): void
  /** All bytes were given to the connection. */
  onSent(): void
  /** The body cannot be read. */
  onFailed(): void
}

/** Sends a body piece by piece, each when the upstream has taken the one before. */
export class BodySending {
  readonly #socket: Socket
  readonly #body: OutgoingBody
  readonly #listener: SendingListener
  #isStopped = false

  constructor(socket: Socket, body: OutgoingBody, listener: SendingListener) {
    this.#socket = socket
    this.#body = body
    this.#listener = listener
    this.#send().catch(() => {
      if (!this.#isStopped) this.#listener.onFailed()
    })
  }

  /** Ends the sending, wherever it is. */
  stop(): void {
    this.#isStopped = true
  }

  async #send(): Promise<void> {
    for (let position = 0; position < this.#body.length; ) {
      const piece = await this.#body.read(position)
      if (this.#isStopped) return
      position += piece.length
      await new Promise<void>((resolve) => this.#socket.write(piece, () => resolve()))
      if (this.#isStopped) return
      this.#listener.onProgress()
    }
    this.#listener.onSent()
  }
}

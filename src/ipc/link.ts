import type { Socket } from 'node:net'
import { deserialize, serialize } from 'node:v8'

/** Size of a frame's length prefix in bytes. */
const LENGTH_BYTES = 4
/**
 * Maximum size of a frame in bytes, including its length prefix. A batch of writes may contain stored
 * responses of 64 MiB each.
 */
const MAX_FRAME_BYTES = 256 * 1024 * 1024

/** Types of frames. A message expects no response; a request is answered by a response or a failure. */
type Kind = 'message' | 'request' | 'response' | 'failure'
const KINDS: ReadonlySet<unknown> = new Set<Kind>(['message', 'request', 'response', 'failure'])
type Frame = readonly [kind: Kind, topic: string, id: number, value: unknown]

interface PendingQuestion {
  resolve(value: unknown): void
  reject(error: Error): void
}

/**
 * Exchanges values with another process over a local socket, in order. Any value that `structuredClone`
 * accepts can be sent. A frame that is too long or unreadable closes the link. Received values are not
 * validated, because both ends are the same program, and the socket has no name by which others could open
 * it.
 */
export class Link {
  /** Resolves when the other end is gone or `close` was called; never rejects. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #listeners = new Map<string, (value: never) => void>()
  readonly #answerers = new Map<string, (value: never) => unknown>()
  readonly #pending = new Map<number, PendingQuestion>()
  #lastId = 0
  #outgoing: Buffer[] = []
  #received: Buffer[] = []
  #receivedBytes = 0
  /** Size of the frame that is being received, in bytes, including its length prefix. */
  #wantedBytes = LENGTH_BYTES
  #isClosed = false

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => this.#onBytes(bytes))
    // Errors need no handling, because the `close` event follows.
    socket.on('error', () => {})
    this.closed = new Promise((resolve) =>
      socket.on('close', () => {
        this.#isClosed = true
        for (const pending of this.#pending.values()) pending.reject(linkClosed())
        this.#pending.clear()
        resolve()
      }),
    )
  }

  /** Sends a message; nothing happens if the other end is gone. */
  send(topic: string, value?: unknown): void {
    this.#write(['message', topic, 0, value])
  }

  /** Sets the listener for messages of the topic; each topic has one. */
  on(topic: string, listener: (value: never) => void): void {
    this.#listeners.set(topic, listener)
  }

  /** Sends a request. Rejects if it fails, or if the other end is gone. */
  request<Result>(topic: string, value?: unknown): Promise<Result> {
    if (this.#isClosed) return Promise.reject(linkClosed())
    return new Promise((resolve, reject) => {
      this.#lastId += 1
      this.#write(['request', topic, this.#lastId, value])
      this.#pending.set(this.#lastId, { resolve, reject })
    })
  }

  /** Sets the function that answers requests of the topic; each topic has one. */
  answer(topic: string, answerer: (value: never) => unknown): void {
    this.#answerers.set(topic, answerer)
  }

  /** Closes the socket. Everything sent before is still delivered. */
  close(): void {
    queueMicrotask(() => this.#socket.end())
  }

  #write(frame: Frame): void {
    if (this.#isClosed || this.#socket.destroyed) return
    const content = serialize(frame)
    if (content.length > MAX_FRAME_BYTES - LENGTH_BYTES) throw new RangeError('the message is too long')
    const length = Buffer.allocUnsafe(LENGTH_BYTES)
    length.writeUInt32LE(content.length)
    this.#outgoing.push(length, content)
    if (this.#outgoing.length === 2) queueMicrotask(() => this.#flush())
  }

  // Sends all frames of one turn of the event loop in one write, so that they are read together.
  #flush(): void {
    const bytes = Buffer.concat(this.#outgoing)
    this.#outgoing = []
    if (!this.#socket.destroyed) this.#socket.write(bytes)
  }

  #onBytes(bytes: Buffer): void {
    this.#received.push(bytes)
    this.#receivedBytes += bytes.length
    if (this.#receivedBytes < this.#wantedBytes) return
    let rest = this.#received.length === 1 ? bytes : Buffer.concat(this.#received)
    for (;;) {
      this.#wantedBytes = LENGTH_BYTES + (rest.length < LENGTH_BYTES ? 0 : rest.readUInt32LE())
      if (this.#wantedBytes > MAX_FRAME_BYTES) return this.#refuse()
      if (rest.length < Math.max(this.#wantedBytes, LENGTH_BYTES + 1)) break
      const frame = frameIn(rest.subarray(LENGTH_BYTES, this.#wantedBytes))
      if (!frame || !this.#onFrame(frame)) return this.#refuse()
      rest = rest.subarray(this.#wantedBytes)
    }
    this.#received = rest.length === 0 ? [] : [rest]
    this.#receivedBytes = rest.length
  }

  #refuse(): void {
    this.#received = []
    this.#receivedBytes = 0
    this.#socket.removeAllListeners('data')
    this.#socket.destroy()
  }

  /** Handles a received frame. Returns false if its value cannot be read. */
  #onFrame([kind, topic, id, value]: Frame): boolean {
    switch (kind) {
      case 'message':
        try {
          this.#listeners.get(topic)?.(value as never)
          return true
        } catch {
          return false
        }
      case 'request':
        this.#respond(topic, id, value)
        return true
      case 'response':
      case 'failure': {
        const pending = this.#pending.get(id)
        this.#pending.delete(id)
        if (kind === 'response') pending?.resolve(value)
        else pending?.reject(new Error(String(value)))
        return true
      }
    }
  }

  // Responds in the same turn if the answer is not a promise, so that responses are in the order of the
  // requests.
  #respond(topic: string, id: number, value: unknown): void {
    const fail = (error: unknown): void =>
      this.#write(['failure', topic, id, error instanceof Error ? error.message : String(error)])
    try {
      const answer = this.#answerers.get(topic)?.(value as never)
      if (answer instanceof Promise)
        answer.then((result: unknown) => this.#write(['response', topic, id, result]), fail)
      else this.#write(['response', topic, id, answer])
    } catch (error) {
      fail(error)
    }
  }
}

function frameIn(bytes: Uint8Array): Frame | undefined {
  try {
    const value: unknown = deserialize(bytes)
    return isFrame(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isFrame(value: unknown): value is Frame {
  if (!Array.isArray(value)) return false
  const [kind, topic, id] = value as readonly unknown[]
  return KINDS.has(kind) && typeof topic === 'string' && typeof id === 'number'
}

function linkClosed(): Error {
  return new Error('the other process is gone')
}

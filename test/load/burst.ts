import { connect, type Socket } from 'node:net'
import { Answers } from './answers.ts'

/** Calls that are made at one moment. */
export interface BurstPlan {
  readonly port: number
  readonly calls: number
  /** On connections that had a request before, or on new ones. */
  readonly on: 'kept connections' | 'new connections'
  /** Roughly, of each request's body. */
  readonly bodyBytes: number
}

/** Answers by status, 0 for none; and how long the last took, in milliseconds. */
export interface BurstResult {
  readonly counts: Readonly<Record<string, number>>
  readonly lastMs: number
}

const PROBE = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'
/** How many connections are made at one time, where that is no part of the burst. */
const GENTLY = 50

/** Makes them, each a stream of the model `m`, and waits until all are answered. */
export async function burst({ port, calls, on, bodyBytes }: BurstPlan): Promise<BurstResult> {
  const body = JSON.stringify({
    model: 'm',
    stream: true,
    messages: [{ role: 'user', content: 'word '.repeat(bodyBytes / 5) }],
    max_tokens: 10,
  })
  const request = Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-ann\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  const callers: Caller[] = []
  if (on === 'kept connections') {
    while (callers.length < calls) {
      const more = Array.from({ length: Math.min(GENTLY, calls - callers.length) }, () => new Caller(port))
      await Promise.all(more.map((caller) => caller.ask(PROBE)))
      callers.push(...more)
    }
  }
  const beganMs = performance.now()
  while (callers.length < calls) callers.push(new Caller(port))
  const statuses = await Promise.all(callers.map((caller) => caller.ask(request)))
  const lastMs = performance.now() - beganMs
  for (const caller of callers) caller.leave()
  const counts: Record<string, number> = {}
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
  return { counts, lastMs }
}

class Caller {
  readonly #socket: Socket
  readonly #answers = new Answers()
  #answered: ((status: number) => void) | undefined

  constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.on('data', (chunk: Buffer) => {
      const status = this.#answers.push(chunk)
      if (status !== undefined) this.#answered?.(status)
    })
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => this.#answered?.(0))
  }

  /** The status of the answer, once it is complete; 0 where there is none. */
  ask(request: string | Buffer): Promise<number> {
    return new Promise((resolve) => {
      this.#answered = resolve
      this.#socket.write(request)
    })
  }

  leave(): void {
    this.#socket.destroy()
  }
}

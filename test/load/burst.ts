import { connect, type Socket } from 'node:net'
import { Answers } from './answers.ts'

/** Calls that are all sent at one moment. */
export interface BurstPlan {
  readonly port: number
  readonly calls: number
  /** Kept connections have had a request before. */
  readonly on: 'kept connections' | 'new connections'
  /** Approximate size of each request's body. */
  readonly bodyBytes: number
}

/** The number of responses by status, 0 for none, and the latency of the last one in milliseconds. */
export interface BurstResult {
  readonly counts: Readonly<Record<string, number>>
  readonly lastMs: number
}

const PROBE = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'
/** The number of kept connections that are opened together, before the burst. */
const OPENED_TOGETHER = 50

/** Sends the calls, each for a stream of the model `m`, and waits for all responses. */
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
  const clients: BurstClient[] = []
  if (on === 'kept connections') {
    while (clients.length < calls) {
      const more = Array.from(
        { length: Math.min(OPENED_TOGETHER, calls - clients.length) },
        () => new BurstClient(port),
      )
      await Promise.all(more.map((client) => client.send(PROBE)))
      clients.push(...more)
    }
  }
  const startMs = performance.now()
  while (clients.length < calls) clients.push(new BurstClient(port))
  const statuses = await Promise.all(clients.map((client) => client.send(request)))
  const lastMs = performance.now() - startMs
  for (const client of clients) client.disconnect()
  const counts: Record<string, number> = {}
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
  return { counts, lastMs }
}

/** Client with one connection. */
class BurstClient {
  readonly #socket: Socket
  readonly #answers = new Answers()
  #resolve: ((status: number) => void) | undefined

  constructor(port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket.on('data', (chunk: Buffer) => {
      const status = this.#answers.push(chunk)
      if (status !== undefined) this.#resolve?.(status)
    })
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => this.#resolve?.(0))
  }

  /** Sends a request. Resolves with the status of its complete response; 0 if the connection closes. */
  send(request: string | Buffer): Promise<number> {
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#socket.write(request)
    })
  }

  disconnect(): void {
    this.#socket.destroy()
  }
}

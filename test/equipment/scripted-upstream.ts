import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Behaviour } from './behaviour.ts'
import { play } from './play-behaviour.ts'

/** A request as it reached the upstream, and its state. */
export interface Received {
  readonly lane: string
  readonly method: string
  /** Path without the lane: `/v1/chat/completions`. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The body as text. */
  readonly text: string
  readonly at: number
  /** Content events sent so far. */
  readonly eventsSent: number
  /** When the response was complete or its connection had ended; undefined while it is in progress. */
  readonly endedAt: number | undefined
  /** Whether the response was sent to its end. */
  readonly completed: boolean
  /** Settles when `endedAt` is set. */
  readonly ended: Promise<void>
  /** Settles once this many content events are sent. */
  sentAtLeast(events: number): Promise<void>
}

/**
 * A real server that acts as chat upstreams. Each lane is a separate upstream (a channel's base_url selects
 * it) with its own script; tests check the lane's record of requests.
 */
export interface ScriptedUpstream {
  /** The `base_url` of a channel that leads to this lane. */
  baseUrl(lane: string): string
  readonly port: number
  /**
   * Sets the behaviours of the lane's next requests, in order; the last one repeats. Forgets earlier
   * requests.
   */
  script(lane: string, ...behaviours: Behaviour[]): void
  /** Chooses the behaviour for each request by its content. */
  decide(lane: string, decision: (request: Received) => Behaviour): void
  received(lane: string): Received[]
  /** The only request of the lane; throws if there were none or several. */
  only(lane: string): Received
  /** Forgets the lane's requests; its script stays. */
  forget(lane: string): void
  /** Settles once the lane has received this many requests. */
  receivedAtLeast(lane: string, count: number): Promise<void>
  stop(): Promise<void>
}

interface Lane {
  decision: (request: Received) => Behaviour
  readonly requests: Received[]
}

/**
 * Starts the upstream on a free port of 127.0.0.1; a lane without a script sends a whole response or streams
 * five events.
 */
export async function startUpstream(): Promise<ScriptedUpstream> {
  const lanes = new Map<string, Lane>()
  const sockets = new Set<Socket>()
  const requestsOf = new WeakMap<Socket, number>()
  const waiting = new Set<() => void>()
  const lane = (name: string): Lane => {
    const found = lanes.get(name) ?? { decision: asAsked, requests: [] }
    lanes.set(name, found)
    return found
  }
  const until = (condition: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!condition()) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
    })
  const changed = (): void => {
    for (const look of waiting) look()
  }

  const server = createServer((request, reply) => {
    const { socket } = request
    const requestOfConnection = (requestsOf.get(socket) ?? 0) + 1
    requestsOf.set(socket, requestOfConnection)
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      const [, name = '', ...rest] = (request.url ?? '').split('/')
      const body = Buffer.concat(chunks)
      const view = viewOf(body)
      const received = {
        lane: name,
        method: request.method ?? '',
        path: `/${rest.join('/')}`,
        headers: request.headers,
        body,
        text: body.toString(),
        at: performance.now(),
        eventsSent: 0,
        endedAt: undefined as number | undefined,
        completed: false,
        ended: new Promise<void>((resolve) => {
          reply.on('close', () => {
            received.endedAt = performance.now()
            received.completed = reply.writableFinished
            resolve()
            changed()
          })
        }),
        sentAtLeast: (events: number) => until(() => received.eventsSent >= events),
      }
      const here = lane(name)
      here.requests.push(received)
      changed()
      const sent = (): void => {
        received.eventsSent++
        changed()
      }
      reply.on('error', () => {})
      play(here.decision(received), { reply, socket, requestOfConnection, ...view, sent }).catch(() =>
        socket.destroy(),
      )
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  const decide = (name: string, decision: (request: Received) => Behaviour): void => {
    lanes.set(name, { decision, requests: [] })
  }
  return {
    port,
    baseUrl: (name) => `http://127.0.0.1:${port}/${name}/v1`,
    decide,
    script(name, ...behaviours) {
      let next = 0
      decide(name, (request) => behaviours[Math.min(next++, behaviours.length - 1)] ?? asAsked(request))
    },
    received: (name) => [...lane(name).requests],
    only(name) {
      const [request, ...more] = lane(name).requests
      if (!request || more.length > 0)
        throw new Error(`lane ${name} received ${lane(name).requests.length} requests`)
      return request
    },
    forget: (name) => void lane(name).requests.splice(0),
    receivedAtLeast: (name, count) => until(() => lane(name).requests.length >= count),
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function asAsked(request: Received): Behaviour {
  return { kind: viewOf(request.body).streaming ? 'stream' : 'whole' }
}

function viewOf(body: Buffer): { model: string; streaming: boolean; askedForUsage: boolean } {
  try {
    const { model, stream, stream_options: options } = JSON.parse(body.toString())
    return {
      model: String(model),
      streaming: stream === true,
      askedForUsage: options?.include_usage === true,
    }
  } catch {
    return { model: '', streaming: false, askedForUsage: false }
  }
}

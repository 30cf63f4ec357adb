import { connect, type Socket } from 'node:net'

/** A way in which a slow client keeps its connection open without using it. */
export type Slowness = 'says nothing' | 'headers' | 'body' | 'reads nothing'

/** A connection that a slow client keeps open. */
export interface SlowClient {
  /** Milliseconds from opening to end; undefined while the connection is open. */
  readonly lasted: () => number | undefined
  /** Everything received. */
  readonly received: () => string
  readonly hangUp: () => void
}

const DRIP_MS = 500

/** Opens slow connections of this kind, all at once. `head` is the head of a request, `body` its body. */
export async function slowClients(
  port: number,
  count: number,
  slowness: Slowness,
  head: string,
  body: string,
): Promise<SlowClient[]> {
  const clients: Promise<SlowClient>[] = []
  for (let i = 0; i < count; i++) clients.push(slowClient(port, slowness, head, body))
  return Promise.all(clients)
}

function slowClient(port: number, slowness: Slowness, head: string, body: string): Promise<SlowClient> {
  const socket = connect(port, '127.0.0.1')
  const began = performance.now()
  let ended: number | undefined
  let heard = ''
  socket.on('error', () => {})
  const drip = dripping(socket, slowness, head, body)
  if (slowness === 'reads nothing') socket.pause()
  else socket.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')))
  socket.on('close', () => {
    ended = performance.now()
    clearInterval(drip)
  })
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('connect', () =>
      resolve({
        lasted: () => (ended === undefined ? undefined : ended - began),
        received: () => heard,
        hangUp: () => socket.destroy(),
      }),
    )
  })
}

function dripping(
  socket: Socket,
  slowness: Slowness,
  head: string,
  body: string,
): NodeJS.Timeout | undefined {
  switch (slowness) {
    case 'says nothing':
      return undefined
    case 'reads nothing':
      socket.write(head + body)
      return undefined
    case 'headers': {
      socket.write(head.slice(0, head.indexOf('\r\n') + 2))
      return setInterval(() => socket.write('x-a: b\r\n'), DRIP_MS)
    }
    case 'body': {
      socket.write(head + body.slice(0, 1))
      let sent = 1
      return setInterval(() => socket.write(body.slice(sent, ++sent)), DRIP_MS)
    }
  }
}

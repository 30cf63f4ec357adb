import type { Socket } from 'node:net'
import type { Handshake } from './handshake.ts'
import { httpConnect } from './http-connect.ts'
import type { Origin } from './origin.ts'
import type { Proxy } from './proxy.ts'
import { socks5 } from './socks5.ts'

/** Bytes that a proxy may answer with: a longer answer is not a handshake. */
const MAX_BYTES = 16_384

/**
 * Asks a proxy for a tunnel over a connecting socket. `onEnd` is called once, with the reason where there is
 * no tunnel: a fixed phrase. Nothing is read afterwards.
 */
export function openTunnel(
  socket: Socket,
  origin: Origin,
  proxy: Proxy,
  onEnd: (failure: string | undefined) => void,
): void {
  const { send, next: first } = proxy.kind === 'http' ? httpConnect(origin, proxy) : socks5(origin, proxy)
  let next: Handshake = first
  let received: Buffer = Buffer.alloc(0)
  const end = (failure: string | undefined): void => {
    socket.off('data', onData).pause()
    onEnd(failure)
  }
  const onData = (chunk: Buffer): void => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const step = next(received)
      if (!step) {
        if (received.length > MAX_BYTES) end('the server is not a proxy')
        return
      }
      if ('failure' in step) return end(step.failure)
      received = received.subarray(step.used)
      // An upstream does not speak first.
      if ('opened' in step) return end(received.length > 0 ? 'the server is not a proxy' : undefined)
      next = step.next
      socket.write(step.send)
    }
  }
  socket.on('data', onData)
  socket.once('connect', () => socket.write(send))
}

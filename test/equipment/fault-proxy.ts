import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** What the proxy does to a connection, once so many bytes of the answer have passed. */
export interface Fault {
  readonly kind: 'pass' | 'delay' | 'cut' | 'black hole' | 'half-close' | 'slow'
  /** Bytes of the answer that pass before it. */
  readonly afterBytes?: number
  /** For `delay`: before the first byte of the answer. */
  readonly delayMs?: number
}

/** A TCP proxy in front of a server: the same server, behind a bad line. */
export interface FaultProxy {
  readonly port: number
  /** What happens to connections from now on; those that are kept from before are closed. */
  line(fault: Fault): void
  /**
   * From now on nothing passes over the connections that are open, and neither end is told; new ones get this
   * line.
   */
  silence(line: Fault): void
  /**
   * As if the cable were pulled: connections, old ones and new, stay open and nothing comes through, either
   * way, until `release`. Then what was on its way arrives.
   */
  hold(): void
  release(): void
  /** Connections that were made since the line was last set. */
  readonly connections: number
  stop(): Promise<void>
}

/** Starts a proxy to a port of 127.0.0.1, or to another place. */
export async function startFaultProxy(to: number | NetConnectOpts): Promise<FaultProxy> {
  const place = typeof to === 'number' ? { port: to, host: '127.0.0.1' } : to
  let fault: Fault = { kind: 'pass' }
  let connections = 0
  let cable: PromiseWithResolvers<void> | undefined
  const silent = new WeakSet<Socket>()
  const held = (socket: Socket): Promise<void> | undefined =>
    silent.has(socket) ? new Promise(() => {}) : cable?.promise
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (near) => {
    connections += 1
    const far = connect({ ...place, allowHalfOpen: true })
    for (const socket of [near, far]) {
      open.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', async () => {
        open.delete(socket)
        // Through a cable that is pulled, nobody hears either that the other side is gone.
        await held(socket)
        near.destroy()
        far.destroy()
      })
    }
    // Each ends with either side.
    carry(near, far, { kind: 'pass' }, held).catch(() => {})
    carry(far, near, fault, held).catch(() => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    line(next) {
      fault = next
      connections = 0
      for (const socket of open) socket.destroy()
    },
    silence(next) {
      fault = next
      for (const socket of open) silent.add(socket)
    },
    hold() {
      cable ??= Promise.withResolvers()
    },
    release() {
      cable?.resolve()
      cable = undefined
    },
    get connections() {
      return connections
    },
    async stop() {
      for (const socket of open) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

async function carry(
  from: Socket,
  to: Socket,
  { kind, afterBytes = 0, delayMs = 0 }: Fault,
  held: (from: Socket) => Promise<void> | undefined,
): Promise<void> {
  let passed = 0
  let first = true
  for await (const chunk of from as AsyncIterable<Buffer>) {
    await held(from)
    if (kind === 'delay' && first) await sleep(delayMs)
    first = false
    if (kind === 'pass' || kind === 'delay') {
      to.write(chunk)
      continue
    }
    const fitting = chunk.subarray(0, Math.max(0, afterBytes - passed))
    passed += chunk.length
    if (kind === 'slow') {
      for (const byte of chunk) {
        to.write(Buffer.of(byte))
        await sleep(1)
      }
      continue
    }
    if (fitting.length > 0) to.write(fitting)
    if (passed < afterBytes) continue
    if (kind === 'cut') return void to.resetAndDestroy()
    if (kind === 'half-close') return void to.end()
    // A black hole: what comes is taken and never passed on.
  }
  await held(from)
  to.end()
}

import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A fault that the proxy applies to a connection after a number of response bytes. */
export interface Fault {
  readonly kind: 'pass' | 'delay' | 'cut' | 'black hole' | 'half-close' | 'slow'
  /** The number of response bytes that pass before the fault. */
  readonly afterBytes?: number
  /** Delay before the first byte of the response, for `delay`. */
  readonly delayMs?: number
}

/** A TCP proxy in front of a server, which simulates a faulty network. */
export interface FaultProxy {
  readonly port: number
  /** Sets the fault of new connections; idle connections from before are closed. */
  setFault(fault: Fault): void
  /** Stops all traffic on open connections without closing them; new connections get this fault. */
  silence(line: Fault): void
  /**
   * Simulates a pulled network cable: old and new connections stay open, and nothing passes in either
   * direction until `release`. Then the delayed bytes arrive.
   */
  disconnect(): void
  reconnect(): void
  /** Number of connections since the fault was last set. */
  readonly connections: number
  stop(): Promise<void>
}

/** Starts a proxy in front of a port of 127.0.0.1 or of another destination. */
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
        // Through a pulled cable, neither side notices that the other has closed its connection.
        await held(socket)
        near.destroy()
        far.destroy()
      })
    }
    // When either side ends, both directions end.
    carry(near, far, { kind: 'pass' }, held).catch(() => {})
    carry(far, near, fault, held).catch(() => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    setFault(next) {
      fault = next
      connections = 0
      for (const socket of open) socket.destroy()
    },
    silence(next) {
      fault = next
      for (const socket of open) silent.add(socket)
    },
    disconnect() {
      cable ??= Promise.withResolvers()
    },
    reconnect() {
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
    // Without a case for `black hole`, bytes are read and never forwarded.
  }
  await held(from)
  to.end()
}

import { connect } from 'node:net'
import process from 'node:process'

/** Instructions for the readers. */
export interface ReadersOrder {
  readonly port: number
  readonly key: string
  readonly streams: number
  /** Milliseconds over which the starts of the streams are spread. */
  readonly rampMs: number
  readonly paceMs: number
}

/** The readers' measurements. */
export interface ReadersResult {
  /** Streams that ended with `[DONE]`. */
  readonly complete: number
  /** Wrong responses, shortened. */
  readonly wrong: readonly string[]
  readonly events: number
  /**
   * The deviation of the time between two events from the pace, in milliseconds: quantiles over all events.
   */
  readonly jitterMs: { readonly p50: number; readonly p99: number; readonly max: number }
}

/** Jitter is counted in tenths of a millisecond, up to ten seconds. */
const BUCKETS = 100_000

async function read(order: ReadersOrder): Promise<ReadersResult> {
  const counts = new Uint32Array(BUCKETS + 1)
  const wrong: string[] = []
  let events = 0
  let complete = 0
  const one = (index: number): Promise<void> =>
    new Promise((resolve) => {
      const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] })
      // One address may hold half of the gateway's connections.
      const localAddress = `127.0.0.${1 + (index % 4)}`
      const socket = connect({ port: order.port, host: '127.0.0.1', localAddress, noDelay: true })
      let head = ''
      let tail = ''
      let lastMs = 0
      socket.on('connect', () =>
        socket.write(
          `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${order.key}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
        ),
      )
      socket.on('data', (chunk: Buffer) => {
        const nowMs = performance.now()
        const text = chunk.toString('latin1')
        if (head.length < 300) head += text.slice(0, 300)
        tail = (tail + text).slice(-64)
        for (let at = text.indexOf('" word"'); at !== -1; at = text.indexOf('" word"', at + 1)) {
          events += 1
          if (lastMs > 0) {
            const jitter = Math.round(Math.abs(nowMs - lastMs - order.paceMs) * 10)
            counts[Math.min(BUCKETS, jitter)] = (counts[Math.min(BUCKETS, jitter)] ?? 0) + 1
          }
          lastMs = nowMs
        }
      })
      socket.on('error', () => {})
      socket.on('close', () => {
        if (head.startsWith('HTTP/1.1 200') && tail.includes('data: [DONE]')) complete += 1
        else if (wrong.length < 10) wrong.push(head.slice(0, 300) || 'nothing')
        resolve()
      })
    })
  const all: Promise<void>[] = []
  for (let index = 0; index < order.streams; index++) {
    all.push(one(index))
    await new Promise((resolve) => setTimeout(resolve, order.rampMs / order.streams))
  }
  await Promise.all(all)
  const total = counts.reduce((sum, count) => sum + count, 0)
  return { complete, wrong, events, jitterMs: { p50: share(0.5), p99: share(0.99), max: share(1) } }

  function share(part: number): number {
    let passed = 0
    for (let bucket = 0; bucket <= BUCKETS; bucket++) {
      passed += counts[bucket] ?? 0
      if (passed >= part * total) return bucket / 10
    }
    return 0
  }
}

process.on('message', (order: ReadersOrder) => void read(order).then((result) => process.send?.(result)))
process.on('disconnect', () => process.exit())

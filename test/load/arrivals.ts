import { connect, type Socket } from 'node:net'
import process from 'node:process'
import { MessageReader } from '../../bench/frames.ts'

/** What the generator is told to do. */
export interface ArrivalsOrder {
  readonly port: number
  readonly key: string
  readonly perSecond: number
  readonly seconds: number
}

/** Latencies in milliseconds. */
export interface Latencies {
  readonly p50: number
  readonly p99: number
  readonly most: number
}

/** What it saw, by status; 0 stands for calls that got no answer. */
export interface ArrivalsResult {
  readonly counts: Readonly<Record<string, number>>
  readonly latencies: Readonly<Record<string, Latencies>>
}

/** Calls that may wait for an answer at one time; one that comes beyond it got none. */
const MOST_WAITING = 4_000
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], max_tokens: 500 })

/**
 * An open loop: calls come when they are due, whatever became of those before them, and wait from when they were due. Whoever
 * waits for an answer before the next call measures a slow gateway as a calm one.
 */
function arrive({ port, key, perSecond, seconds }: ArrivalsOrder): Promise<ArrivalsResult> {
  const request = Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`,
  )
  const idle: Socket[] = []
  const dueOf = new Map<Socket, number>()
  const taken = new Map<number, number[]>()
  let waiting = 0

  const note = (status: number, sinceMs: number): void => {
    const times = taken.get(status)
    if (times) times.push(performance.now() - sinceMs)
    else taken.set(status, [performance.now() - sinceMs])
  }
  const answered = (socket: Socket, status: number): void => {
    const dueMs = dueOf.get(socket)
    if (dueMs === undefined) return
    dueOf.delete(socket)
    waiting -= 1
    note(status, dueMs)
  }
  const open = (): Socket => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const reader = new MessageReader()
    socket.on('data', (chunk: Buffer) =>
      reader.push(chunk, (line) => {
        answered(socket, Number(line.split(' ')[1]))
        idle.push(socket)
      }),
    )
    socket.on('error', () => {})
    socket.on('close', () => {
      answered(socket, 0)
      const at = idle.indexOf(socket)
      if (at !== -1) idle.splice(at, 1)
    })
    return socket
  }

  return new Promise((resolve) => {
    const startMs = performance.now()
    let sent = 0
    const timer = setInterval(() => {
      const nowMs = performance.now()
      const due = Math.min(perSecond * seconds, Math.floor(((nowMs - startMs) / 1000) * perSecond))
      for (; sent < due; sent++) {
        const dueMs = startMs + (sent / perSecond) * 1000
        if (waiting >= MOST_WAITING) {
          note(0, dueMs)
          continue
        }
        const socket = idle.pop() ?? open()
        dueOf.set(socket, dueMs)
        waiting += 1
        socket.write(request)
      }
      const isOver = sent >= perSecond * seconds && (waiting === 0 || nowMs - startMs > (seconds + 10) * 1000)
      if (!isOver) return
      clearInterval(timer)
      for (const [socket] of dueOf) socket.destroy()
      for (const socket of idle) socket.destroy()
      const entries = [...taken]
      resolve({
        counts: Object.fromEntries(entries.map(([status, times]) => [status, times.length])),
        latencies: Object.fromEntries(entries.map(([status, times]) => [status, shares(times)])),
      })
    }, 2)
  })
}

function shares(times: number[]): Latencies {
  const sorted = Float64Array.from(times).sort()
  const at = (part: number): number =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0) * 10) / 10
  return { p50: at(0.5), p99: at(0.99), most: at(1) }
}

process.on('message', (order: ArrivalsOrder) => void arrive(order).then((result) => process.send?.(result)))
process.on('disconnect', () => process.exit())

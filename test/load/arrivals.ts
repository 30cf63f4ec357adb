import { connect, type Socket } from 'node:net'
import process from 'node:process'
import { Answers } from './answers.ts'

/** Instructions for the load generator. */
export interface ArrivalsOrder {
  readonly port: number
  readonly key: string
  /** The JSON text of each call. */
  readonly body: string
  readonly seconds: number
  /** Seconds until the gateway's load is steady: latencies of later calls are also reported separately. */
  readonly settlingSeconds?: number
  /**
   * An open loop of this number of calls each second, whatever the state of earlier ones; or a closed loop of
   * this number of clients, each of which waits for its response.
   */
  readonly pace: { readonly perSecond: number } | { readonly clients: number }
}

/** Latencies in milliseconds. */
export interface Latencies {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** The generator's measurements by status; 0 represents calls without a response. */
export interface ArrivalsResult {
  readonly counts: Readonly<Record<string, number>>
  /** Latencies from the time at which each call was due. */
  readonly latencies: Readonly<Record<string, Latencies>>
  /** Latencies of calls after the settling time. */
  readonly settled: Readonly<Record<string, Latencies>>
  /** The delay with which calls were sent, which is the generator's own part of the latencies. */
  readonly sentLate: Latencies
  /** Responses in each second, by status. */
  readonly bySecond: readonly Readonly<Record<string, number>>[]
  /** Calls without a response, by the error of their connection. */
  readonly unanswered: Readonly<Record<string, number>>
}

/** Maximum number of calls that wait for a response; a further one counts as unanswered. */
const MAX_WAITING = 8_000
/** The read buffer of all connections: allocating one for each read would delay the generator. */
const READ = Buffer.allocUnsafe(262_144)
/** Milliseconds for which responses are awaited after the last call. */
const DRAIN_LIMIT_MS = 10_000

function arrive({
  port,
  key,
  body,
  seconds,
  settlingSeconds = 0,
  pace,
}: ArrivalsOrder): Promise<ArrivalsResult> {
  const request = Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  const idle: Socket[] = []
  const dueOf = new Map<Socket, number>()
  const taken = new Map<number, number[]>()
  const takenLater = new Map<number, number[]>()
  const sentLate: number[] = []
  const bySecond: Record<string, number>[] = []
  const unanswered: Record<string, number> = {}
  const startMs = performance.now()
  const endMs = startMs + seconds * 1000

  const note = (status: number, sinceMs: number): void => {
    const nowMs = performance.now()
    const isLater = sinceMs - startMs >= settlingSeconds * 1000
    for (const of of isLater ? [taken, takenLater] : [taken]) {
      const times = of.get(status) ?? []
      of.set(status, times)
      times.push(nowMs - sinceMs)
    }
    const second = (bySecond[Math.floor((nowMs - startMs) / 1000)] ??= {})
    second[status] = (second[status] ?? 0) + 1
  }
  const lose = (reason: string, dueMs: number): void => {
    unanswered[reason] = (unanswered[reason] ?? 0) + 1
    note(0, dueMs)
  }
  const send = (dueMs: number): void => {
    if (dueOf.size >= MAX_WAITING) return lose('not sent', dueMs)
    const socket = idle.pop() ?? open()
    dueOf.set(socket, dueMs)
    sentLate.push(performance.now() - dueMs)
    socket.write(request)
  }
  /** `status`: 0 without a response, because of `error`. */
  const answered = (socket: Socket, status: number, error = ''): void => {
    const dueMs = dueOf.get(socket)
    if (dueMs === undefined) return
    dueOf.delete(socket)
    if (status > 0) {
      note(status, dueMs)
      idle.push(socket)
    } else lose(error, dueMs)
    const nowMs = performance.now()
    if ('clients' in pace && nowMs < endMs) send(nowMs)
  }
  const open = (): Socket => {
    const answers = new Answers()
    const socket = connect({
      port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: READ,
        callback(length) {
          const status = answers.push(READ.subarray(0, length))
          if (status !== undefined) answered(socket, status)
          return true
        },
      },
    })
    let error = 'closed'
    socket.on('error', ({ code = error }: NodeJS.ErrnoException) => (error = code))
    socket.on('close', () => {
      answered(socket, 0, error)
      const at = idle.indexOf(socket)
      if (at !== -1) idle.splice(at, 1)
    })
    return socket
  }
  const sendDue = (nowMs: number): boolean => {
    if ('clients' in pace) {
      const isOver = nowMs >= endMs
      if (!isOver) while (dueOf.size < pace.clients) send(nowMs)
      return isOver
    }
    const all = Math.round(pace.perSecond * seconds)
    const due = Math.min(all, Math.floor(((nowMs - startMs) / 1000) * pace.perSecond))
    for (; sent < due; sent++) send(startMs + (sent / pace.perSecond) * 1000)
    return sent >= all && nowMs >= endMs
  }
  let sent = 0

  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const nowMs = performance.now()
      if (!sendDue(nowMs) || (dueOf.size > 0 && nowMs < endMs + DRAIN_LIMIT_MS)) return
      clearInterval(timer)
      for (const socket of [...dueOf.keys(), ...idle]) socket.destroy()
      resolve({
        counts: Object.fromEntries([...taken].map(([status, times]) => [status, times.length])),
        latencies: sharesOf(taken),
        settled: sharesOf(takenLater),
        sentLate: shares(sentLate),
        bySecond: Array.from(bySecond, (second) => second ?? {}),
        unanswered,
      })
    }, 2)
  })
}

function sharesOf(taken: ReadonlyMap<number, number[]>): Readonly<Record<string, Latencies>> {
  return Object.fromEntries([...taken].map(([status, times]) => [status, shares(times)]))
}

function shares(times: number[]): Latencies {
  const sorted = Float64Array.from(times).sort()
  const at = (part: number): number =>
    Math.round((sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0) * 10) / 10
  return { p50: at(0.5), p99: at(0.99), max: at(1) }
}

process.on('message', (order: ArrivalsOrder) => void arrive(order).then((result) => process.send?.(result)))
process.on('disconnect', () => process.exit())

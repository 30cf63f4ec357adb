import { connect } from 'node:net'
import { AnswerReader } from './answer-reader.ts'
import type { Order, Measurements } from './orders.ts'

/** Sends each request as soon as the previous one on its connection is answered. */
export function saturate(order: Order & { kind: 'saturate' }): Promise<Measurements> {
  const message = Buffer.from(order.message)
  let sent = 0
  let events = 0
  let failed = 0
  let firstFailure: string | undefined
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ port: order.port, host: '127.0.0.1', noDelay: true })
      const reader = new AnswerReader()
      const next = (): void => {
        if (sent < order.requests) {
          sent += 1
          socket.write(message)
        } else {
          socket.destroy()
        }
      }
      socket.on('connect', next)
      socket.on('data', (chunk: Buffer) => {
        if (!reader.push(chunk)) return
        events += reader.marks
        if (reader.status !== 200) {
          failed += 1
          firstFailure ??= chunk.toString('latin1', 0, 600)
        }
        reader.reset()
        next()
      })
      socket.on('error', (error) => {
        failed += 1
        firstFailure ??= String(error)
      })
      socket.on('close', () => resolve())
    })
  return Promise.all(Array.from({ length: order.connections }, one)).then(() => ({
    events,
    failed: failed + order.requests - sent,
    firstFailure,
    latencies: [],
  }))
}

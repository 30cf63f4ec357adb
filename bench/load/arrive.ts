import { connect, type Socket } from 'node:net'
import { AnswerReader } from './answer-reader.ts'
import type { Order, Measurements } from './orders.ts'
import { nowMicros } from './stamp.ts'

/**
 * Sends requests at a fixed rate, each over an idle or a new connection, so that none waits for another's
 * response. Latency counts from the moment of sending, minus the time for which the upstream reports to have
 * held the response, so that late timers here or there are not attributed to the gateway.
 */
export async function arrive(order: Order & { kind: 'arrive' }): Promise<Measurements> {
  const message = Buffer.from(order.message)
  const free: Call[] = []
  const open = new Set<Call>()
  const latencies: number[] = []
  let failed = 0
  let firstFailure: string | undefined
  let underWay = 0
  const total = order.perSecond * order.seconds
  const drained = Promise.withResolvers<void>()
  let sent = 0
  const over = (): void => {
    underWay -= 1
    if (sent === total && underWay === 0) drained.resolve()
  }

  const began = performance.now()
  const timer = setInterval(() => {
    const due = Math.min(total, Math.floor(((performance.now() - began) / 1000) * order.perSecond))
    for (; sent < due; sent++) {
      underWay += 1
      const call = free.pop() ?? opened()
      call.send()
    }
    if (sent === total) clearInterval(timer)
  }, 1)
  await drained.promise
  for (const call of open) call.close()
  return { events: total - failed, failed, firstFailure, latencies: latencies.toSorted((a, b) => a - b) }

  function opened(): Call {
    const call = new Call(order.port, message, (micros, failure) => {
      if (failure === undefined) {
        latencies.push(micros)
        free.push(call)
      } else {
        failed += 1
        firstFailure ??= failure
        open.delete(call)
      }
      over()
    })
    open.add(call)
    return call
  }
}

/** A connection, and the call on it. */
class Call {
  readonly #socket: Socket
  readonly #message: Buffer
  #sentMicros = 0
  #heldMicros = 0
  #isUnderWay = false

  constructor(
    port: number,
    message: Buffer,
    answered: (micros: number, failure: string | undefined) => void,
  ) {
    this.#message = message
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const reader = new AnswerReader((stamp) => {
      this.#heldMicros = stamp
    })
    const failed = (why: string): void => {
      if (!this.#isUnderWay) return
      this.#isUnderWay = false
      answered(0, why)
      this.#socket.destroy()
    }
    this.#socket.on('data', (chunk: Buffer) => {
      if (!reader.push(chunk)) return
      const { status } = reader
      reader.reset()
      if (status !== 200) {
        failed(chunk.toString('latin1', 0, 600))
        return
      }
      this.#isUnderWay = false
      answered(nowMicros() - this.#sentMicros - this.#heldMicros, undefined)
    })
    this.#socket.on('error', (error) => failed(String(error)))
    this.#socket.on('close', () => failed('the connection was closed'))
  }

  send(): void {
    this.#isUnderWay = true
    this.#sentMicros = nowMicros()
    this.#socket.write(this.#message)
  }

  close(): void {
    this.#socket.destroy()
  }
}

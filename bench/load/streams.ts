import { connect } from 'node:net'
import { AnswerReader } from './answer-reader.ts'
import type { Order, Measurements } from './orders.ts'
import { nowMicros } from './stamp.ts'

/** Streams that are open at the same time, all to the same target. */
export class Streams {
  #events = 0
  #failed = 0
  #firstFailure: string | undefined
  #latencies: number[] = []
  #running: Promise<void>[] = []

  async open({ port, message, streams }: Order & { kind: 'open' }): Promise<Measurements> {
    this.#failed = 0
    this.#firstFailure = undefined
    this.#running = []
    const first: Promise<void>[] = []
    for (let index = 0; index < streams; index++) {
      const begun = Promise.withResolvers<void>()
      first.push(begun.promise)
      this.#running.push(this.#one(port, message, begun.resolve))
      // Opens one stream per millisecond, which distributes their events over the pace.
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await Promise.all(first)
    return this.tell()
  }

  forget(): void {
    this.#events = 0
    this.#latencies = []
  }

  tell(): Measurements {
    return {
      events: this.#events,
      failed: this.#failed,
      firstFailure: this.#firstFailure,
      latencies: this.#latencies.toSorted((a, b) => a - b),
    }
  }

  async ended(): Promise<Measurements> {
    await Promise.all(this.#running)
    return this.tell()
  }

  #one(port: number, message: string, begun: () => void): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      let isComplete = false
      const reader = new AnswerReader((stamp) => {
        begun()
        this.#events += 1
        if (stamp > 0) this.#latencies.push(nowMicros() - stamp)
      })
      socket.on('connect', () => socket.write(message))
      socket.on('data', (chunk: Buffer) => {
        if (!reader.push(chunk)) return
        isComplete = reader.status === 200
        if (!isComplete) this.#firstFailure ??= chunk.toString('latin1', 0, 600)
        socket.destroy()
      })
      socket.on('error', (error) => {
        this.#firstFailure ??= String(error)
      })
      socket.on('close', () => {
        if (!isComplete) this.#failed += 1
        begun()
        resolve()
      })
    })
  }
}

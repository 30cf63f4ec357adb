import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { used } from './used.ts'

/** Turns the text of one dialect's events into that of another's. */
export interface Converter {
  push(text: string): string
}

const USAGE = '"usage":{'

/**
 * Forwards a stream: one write per read, with backpressure if the client reads slowly; stops when the client
 * disconnects.
 */
export class StreamAnswer implements Dispatcher.DispatchHandler {
  readonly #reply: ServerResponse
  readonly #converter: Converter | undefined
  #tail = ''
  #isGone = false

  constructor(reply: ServerResponse, converter: Converter | undefined) {
    this.#reply = reply
    this.#converter = converter
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#reply.on('close', () => {
      if (this.#reply.writableFinished) return
      this.#isGone = true
      controller.abort(new Error('the client has left'))
    })
    this.#reply.on('drain', () => controller.resume())
  }

  onResponseStart(): void {
    this.#reply.writeHead(200, { 'content-type': 'text/event-stream' })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const text = this.#tail + chunk.toString('latin1')
    if (text.includes(USAGE)) used.tokens += 1
    this.#tail = text.slice(-USAGE.length)
    const takesMore = this.#reply.write(this.#converter ? this.#converter.push(chunk.toString()) : chunk)
    if (!takesMore) controller.pause()
  }

  onResponseEnd(): void {
    this.#reply.end()
  }

  onResponseError(): void {
    if (!this.#isGone) this.#reply.destroy()
  }
}

import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { used } from './used.ts'

/** Passes a whole response on once it is complete, and reads its usage. */
export class WholeAnswer implements Dispatcher.DispatchHandler {
  readonly #reply: ServerResponse
  readonly #chunks: Buffer[] = []

  constructor(reply: ServerResponse) {
    this.#reply = reply
  }

  onRequestStart(): void {}
  onResponseStart(): void {}

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#chunks)
    used.tokens += (JSON.parse(body.toString()) as { usage: { total_tokens: number } }).usage.total_tokens
    this.#reply.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length) })
    this.#reply.end(body)
  }

  onResponseError(): void {
    this.#reply.destroy()
  }
}

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'
import { type Dispatcher, Pool } from 'undici'

/**
 * What a gateway costs at the least on this runtime: parse the body, find the channel of its model, forward it with the
 * channel's key, and parse the answer for its usage. Nothing is checked, kept, logged or charged.
 */
const upstream = new Pool(String(process.argv[2]), { connections: 128 })
const channels = new Map([['bench', { key: 'Bearer upstream-key' }]])
const used = { tokens: 0 }

class Forwarded implements Dispatcher.DispatchHandler {
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

const server = createServer((request, reply) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const { model } = JSON.parse(body.toString()) as { model: string }
    const channel = channels.get(model)
    if (!channel) {
      reply.writeHead(404).end()
      return
    }
    const headers = { authorization: channel.key, 'content-type': 'application/json' }
    upstream.dispatch({ path: '/v1/chat/completions', method: 'POST', headers, body }, new Forwarded(reply))
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

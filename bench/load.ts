import { connect } from 'node:net'
import process from 'node:process'
import { MessageReader } from './frames.ts'

/** What the load generator is told to do. */
export interface LoadOrder {
  readonly port: number
  readonly key: string
  readonly requests: number
  readonly connections: number
}

/** What it saw. */
export interface LoadResult {
  readonly seconds: number
  readonly failed: number
}

/** Sends the requests over raw connections, each as soon as the one before it is answered. */
function load({ port, key, requests, connections }: LoadOrder): Promise<LoadResult> {
  const content = 'The quick brown fox jumps over the lazy dog. '.repeat(42)
  const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content }], max_tokens: 500 })
  const request = Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  const started = performance.now()
  let sent = 0
  let failed = 0
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      const reader = new MessageReader()
      const next = (): void => {
        if (sent < requests) {
          sent++
          socket.write(request)
        } else {
          socket.destroy()
          resolve()
        }
      }
      socket.on('connect', next)
      socket.on('error', reject)
      socket.on('data', (chunk: Buffer) => {
        try {
          reader.push(chunk, (status) => {
            if (!status.includes(' 200 ')) failed++
            next()
          })
        } catch (error) {
          reject(error)
        }
      })
    })
  return Promise.all(Array.from({ length: connections }, one)).then(() => ({
    seconds: (performance.now() - started) / 1000,
    failed,
  }))
}

process.on('message', (order: LoadOrder) => {
  void load(order).then((result) => process.send?.(result))
})

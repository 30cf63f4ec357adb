import { type AddressInfo, createServer } from 'node:net'
import process from 'node:process'
import { MessageReader } from './frames.ts'

/** An upstream that answers every request with the same 2 KB, as cheaply as can be. Tells its port to its parent. */
const content = 'All work and no play makes Jack a dull boy. '.repeat(40)
const body = Buffer.from(
  `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"${content}"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":420,"completion_tokens":440,"total_tokens":860}}`,
)
const answer = Buffer.concat([
  Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`),
  body,
])

const server = createServer({ noDelay: true }, (socket) => {
  const reader = new MessageReader()
  socket.on('data', (chunk: Buffer) => reader.push(chunk, () => socket.write(answer)))
  socket.on('error', () => {})
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

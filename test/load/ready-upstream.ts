import { type AddressInfo, createServer } from 'node:net'
import process from 'node:process'
import { Requests } from './requests.ts'

/**
 * A separate program: an upstream with a prepared response, which it sends in one write after this number of
 * milliseconds. It uses almost no CPU time, so that the measured work is the gateway's.
 */

/**
 * The response: a completion of 2 KB in the chat dialect, or a stream of 800 words, or of five, in the
 * messages dialect.
 */
export type Readiness = 'completion' | 'stream' | 'short-stream'

const frame = (event: { readonly type: string }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

function streamOf(words: number): string {
  return [
    {
      type: 'message_start',
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 20, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...Array.from({ length: words }, () => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: ' word' },
    })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: words },
    },
    { type: 'message_stop' },
  ]
    .map(frame)
    .join('')
}

const BODIES: Readonly<Record<Readiness, readonly [type: string, text: () => string]>> = {
  completion: [
    'application/json',
    () =>
      JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: 'All work and no play. '.repeat(80) },
            finish_reason: 'stop',
          },
        ],
        usage: { prompt_tokens: 20, completion_tokens: 440, total_tokens: 460 },
      }),
  ],
  stream: ['text/event-stream', () => streamOf(800)],
  'short-stream': ['text/event-stream', () => streamOf(5)],
}

const [readiness = 'completion', afterMs = '0'] = process.argv.slice(2)
const [type, text] = BODIES[readiness as Readiness]
const body = text()
const answer = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
)

const server = createServer({ noDelay: true }, (socket) => {
  const requests = new Requests()
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    for (let complete = requests.push(chunk); complete > 0; complete--) {
      if (afterMs === '0') socket.write(answer)
      else setTimeout(() => socket.write(answer), Number(afterMs))
    }
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())

import { once } from 'node:events'
import { createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventMessage } from './providers/bedrock.ts'

/** A server that speaks Bedrock's messages protocol in front of a chat upstream. */
export interface BedrockFront {
  readonly url: string
  close(): Promise<void>
}

interface ChatChunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[]
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number }
}

/**
 * Starts the server. Requests carry the chat request's `user` in their first stop sequence, because Bedrock
 * accepts no other text that the model does not read.
 */
export async function startBedrockFront(chatUrl: string): Promise<BedrockFront> {
  const server = createServer((request, response) => {
    void served(request, response, chatUrl).catch(() => response.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await once(server.close(), 'close')
    },
  }
}

async function served(request: IncomingMessage, response: ServerResponse, chatUrl: string): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { stop_sequences: [user] = [] } = JSON.parse(Buffer.concat(chunks).toString())
  const stream = request.url?.endsWith('invoke-with-response-stream') === true
  const more = stream ? { stream, stream_options: { include_usage: true } } : {}
  const asked = ask(`${chatUrl}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  })
  asked.on('error', () => response.destroy())
  response.on('close', () => asked.destroy())
  asked.end(JSON.stringify({ model: 'm', user, messages: [], ...more }))
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.on('error', () => response.destroy())
  answer.setEncoding('utf8')
  if (stream) return translate(answer, response)
  let text = ''
  for await (const part of answer) text += part
  const { choices, usage } = JSON.parse(text)
  const content = [{ type: 'text', text: choices[0].message.content }]
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ ...message(usage), content, stop_reason: 'end_turn' }))
}

// The usage of the prompt is reported only at the end, as the chat upstream does.
async function translate(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' })
  const send = (event: object): boolean => response.write(eventMessage(event))
  const empty = { prompt_tokens: 0, completion_tokens: 0 }
  let usage: ChatChunk['usage'] = empty
  let rest = ''
  send({ type: 'message_start', message: { ...message(empty), content: [], stop_reason: null } })
  send({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
  for await (const part of answer) {
    const frames = (rest + part).split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      if (!frame.startsWith('data: {')) continue
      const chunk = JSON.parse(frame.slice('data: '.length)) as ChatChunk
      usage = chunk.usage ?? usage
      const text = chunk.choices?.[0]?.delta?.content
      if (text) send({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })
    }
  }
  if (usage === empty) return void response.destroy()
  send({ type: 'content_block_stop', index: 0 })
  const counts = { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens }
  send({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: counts })
  send({ type: 'message_stop' })
  response.end()
}

function message(usage: NonNullable<ChatChunk['usage']>): object {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    stop_sequence: null,
    usage: { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens },
  }
}

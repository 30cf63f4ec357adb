import { agentConversation } from './agent-conversation.ts'
import type { Call, Candidate } from '../candidates/candidate.ts'
import { type Behaviour, CLIENT_KEY, modelOf, pathOf, SHORT_KEY, type Wire } from './wire.ts'

const SENTENCE = 'The quick brown fox jumps over the lazy dog. '
/** Size of each message in a large body, which is a conversation. */
const TURN = 2000

/** Maximum of output tokens, with which a call holds little, and with which it holds much more than it costs. */
const OUTPUT = 500
const LONG_OUTPUT = 100_000

/** The body of a call in this dialect. */
export function bodyOf({ behaviour, upstream, bytes, content, uses }: Call, wire: Wire): string {
  const isStream = streams(behaviour)
  const model = modelOf(behaviour, upstream)
  if (wire === 'gemini') {
    const contents = proseConversation(bytes).messages.map(({ role, content: text }) => ({
      role: role === 'user' ? role : 'model',
      parts: [{ text }],
    }))
    return JSON.stringify({ contents, generationConfig: { maxOutputTokens: OUTPUT } })
  }
  if (wire === 'responses') {
    const { messages: input } = proseConversation(bytes)
    return JSON.stringify({ model, max_output_tokens: OUTPUT, ...(isStream && { stream: true }), input })
  }
  const body = JSON.stringify({
    model,
    max_tokens: uses?.includes('remembered prompts') ? LONG_OUTPUT : OUTPUT,
    ...(isStream ? { stream: true } : {}),
    ...(isStream && wire === 'chat' ? { stream_options: { include_usage: true } } : {}),
    ...(content?.startsWith('agent') ? agentConversation(bytes) : proseConversation(bytes)),
  })
  return content === 'agent, ASCII' ? asciiOf(body) : body
}

/** The text with every other character replaced by a hyphen. */
export function asciiOf(text: string): string {
  return text.replace(/[^\0-\x7f]/g, '-')
}

function streams(behaviour: Behaviour): boolean {
  return behaviour !== 'whole' && behaviour !== 'stating' && behaviour !== 'late'
}

/** A turn of a conversation in plain words. */
interface Turn {
  readonly role: string
  readonly content: string
}

function proseConversation(bytes: number): { readonly messages: readonly Turn[] } {
  const turns = Math.max(1, Math.round(bytes / TURN))
  const content = SENTENCE.repeat(Math.ceil(Math.min(bytes, TURN) / SENTENCE.length))
  // The first and the last turn are those of the client.
  const messages = Array.from({ length: turns + ((turns + 1) % 2) }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content,
  }))
  return { messages }
}

/** The request as sent to a gateway. */
export function gatewayRequest(call: Call): ReturnType<Candidate['request']> {
  const key = call.uses?.includes('remembered prompts') ? SHORT_KEY : CLIENT_KEY
  const session = call.uses?.includes('session') ? 'x-session-id: bench\r\n' : ''
  const headers = `authorization: Bearer ${key}\r\n${session}`
  if (call.method === 'GET') return { path: '/v1/models', headers, body: '' }
  return { path: pathIn(call, call.client), headers, body: bodyOf(call, call.client) }
}

/** The request as sent to a plain proxy, in the upstream's own dialect. */
export function copiedRequest(call: Call): ReturnType<Candidate['request']> {
  if (call.method === 'GET') return undefined
  return { path: pathIn(call, call.upstream), headers: '', body: bodyOf(call, call.upstream) }
}

function pathIn({ behaviour, upstream }: Call, wire: Wire): string {
  return pathOf(wire, modelOf(behaviour, upstream), streams(behaviour))
}

/** The bytes of a candidate's request; undefined if the candidate cannot serve the call. */
export function messageTo(candidate: Candidate, port: number, call: Call): string | undefined {
  const request = candidate.request(call)
  if (!request) return undefined
  const { path, headers, body } = request
  const length =
    call.method === 'GET'
      ? ''
      : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
  return `${call.method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${headers}${length}\r\n${body}`
}

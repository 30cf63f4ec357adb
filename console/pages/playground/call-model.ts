import { callWithKey } from '../../api/playground.ts'
import { eventsOf } from '../../components/event-splitter.ts'
import { type Answer, type Content, EMPTY_CONTENT, type Protocol } from './answer.ts'
import { readChat } from './read-chat.ts'
import { readGemini } from './read-gemini.ts'
import { readEmbeddings, readImages, readSpeech } from './read-media.ts'
import { readMessages } from './read-messages.ts'
import { readResponses } from './read-responses.ts'

const READERS = {
  chat: readChat,
  messages: readMessages,
  responses: readResponses,
  gemini: readGemini,
  images: readImages,
  speech: readSpeech,
  embeddings: readEmbeddings,
} as const
/** The maximum number of events that are kept for display. */
const MAX_RAW = 2000

export interface PlaygroundCall {
  readonly protocol: Protocol
  readonly model: string
  readonly keyId: number
  readonly body: object
  readonly isStream: boolean
  readonly signal: AbortSignal
}

/** Makes a call and reports the response so far whenever more of it arrives; never throws. */
export async function callModel(asking: PlaygroundCall, report: (answer: Answer) => void): Promise<void> {
  const { protocol, model, keyId, body, isStream, signal } = asking
  const started = performance.now()
  let answer: Answer = { protocol, model, keyId, state: 'running', content: EMPTY_CONTENT, raw: [] }
  const change = (changes: Partial<Answer>): void => report((answer = { ...answer, ...changes }))
  const elapsed = (): number => performance.now() - started
  change({})
  try {
    const response = await callWithKey({ protocol, model, isStream }, keyId, body, signal)
    const callId = response.headers.get('x-request-id')
    if (callId !== null) change({ callId })
    if (!response.ok)
      return change({ state: 'failed', totalMs: elapsed(), ...refusal(await response.text()) })
    if (response.headers.get('content-type')?.startsWith('audio/')) {
      const audio = URL.createObjectURL(await response.blob())
      const firstMs = elapsed()
      return change({ firstMs, totalMs: firstMs, state: 'done', content: { ...EMPTY_CONTENT, audio } })
    }
    for await (const data of response.headers.get('content-type')?.startsWith('text/event-stream')
      ? dataOf(response)
      : [await response.text()])
      change({
        firstMs: answer.firstMs ?? elapsed(),
        content: read(protocol, answer.content, data),
        raw: answer.raw.length < MAX_RAW ? [...answer.raw, data] : answer.raw,
      })
    change({ state: answer.content.error === undefined ? 'done' : 'failed', totalMs: elapsed() })
  } catch (error) {
    const refused = { message: error instanceof Error ? error.message : String(error), code: '' }
    change({ totalMs: elapsed(), ...(signal.aborted ? { state: 'stopped' } : { state: 'failed', refused }) })
  }
}

async function* dataOf(response: Response): AsyncGenerator<string> {
  for await (const { data } of eventsOf(response)) yield data
}

function read(protocol: Protocol, content: Content, data: string): Content {
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === 'object' && value !== null ? READERS[protocol](content, value) : content
  } catch {
    // The last event of a chat stream (`[DONE]`) is not JSON.
    return content
  }
}

/** The message of an error, in the format of model calls or of the management API. */
function refusal(body: string): Pick<Answer, 'refused' | 'raw'> {
  try {
    const { error, message, code } = JSON.parse(body) as {
      readonly error?: { readonly message?: string; readonly code?: string }
      readonly message?: string
      readonly code?: string
    }
    return {
      refused: { message: error?.message ?? message ?? body, code: error?.code ?? code ?? '' },
      raw: [body],
    }
  } catch {
    return { refused: { message: body, code: '' }, raw: [body] }
  }
}

import { type AnswerForms, parseEvents } from '@sluice/wire/answer-forms'
import { errorInAnswer, isReplyWith } from '@sluice/wire/answer-error'
import { chatAnswerForms, ChatTap, completionsAnswerForms } from '@sluice/wire/chat'
import { converseAnswerForms, converseCodec } from '@sluice/wire/converse'
import { geminiAnswerForms, GeminiTap } from '@sluice/wire/gemini'
import { asRecord, parseRecord } from '@sluice/wire/json/record'
import { imageAnswerForms, MediaTap, transcriptAnswerForms } from '@sluice/wire/media'
import { messagesAnswerForms, MessagesTap } from '@sluice/wire/messages'
import { responsesAnswerForms, ResponsesTap } from '@sluice/wire/responses'
import type { ReplyEvent } from '@sluice/wire/reply'
import type { StreamTap } from '@sluice/wire/sse/stream-tap'
import type { AttemptRequest } from './request-stages.ts'

/** The form of an answer: one JSON text, a stream of events, or a page for people. */
export type AnswerForm = 'json' | 'events' | 'page' | 'other'

/** Number of bytes by which the form is recognized: those of the longest field name of an event. */
const ENOUGH_BYTES = 6
const FIELD = /^(?:data|event|retry|id)?:/

/** Number of bytes by which JSON is told from sound and words that begin like it. */
const SAMPLE_BYTES = 64
/** An object or a list of objects, without control characters; the last character may be cut. */
const JSON_SAMPLE = /^(?:\{\s*["\}]|\[\s*\{)[\s[^\p{Cc}\u{fffd}]]*\u{fffd}?$/v

/**
 * The form that the first bytes of an answer show, whatever its content type says; undefined while there are too few
 * of them. `isWhole`: nothing follows. `mayBeSound`: it may be sound or words, whose first byte shows nothing.
 */
export function formOfBytes(bytes: Buffer, isWhole: boolean, mayBeSound: boolean): AnswerForm | undefined {
  let at = bytes[0] === BYTE_ORDER_MARK ? 3 : 0
  while (at < bytes.length && SPACES.has(bytes[at] as number)) at++
  const form = FORM_OF_BYTE.get(bytes[at] ?? 0)
  if (form === 'json' && mayBeSound) {
    const sample = bytes.subarray(at, at + SAMPLE_BYTES)
    if (sample.length < SAMPLE_BYTES && !isWhole) return undefined
    return JSON_SAMPLE.test(sample.toString()) ? 'json' : 'other'
  }
  if (form) return form
  const start = bytes.toString('latin1', at, at + ENOUGH_BYTES)
  if (FIELD.test(start)) return 'events'
  return start.length === ENOUGH_BYTES || isWhole ? 'other' : undefined
}

/** The first of the three bytes of a byte order mark. */
const BYTE_ORDER_MARK = 0xef
/** Slow servers send white space before an answer to keep the connection. */
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])
const FORM_OF_BYTE: ReadonlyMap<number, AnswerForm> = new Map([
  [0x7b, 'json'],
  [0x5b, 'json'],
  [0x3c, 'page'],
])

/** How answers of one endpoint are made from the other form. */
interface EndpointForms {
  readonly path: RegExp
  readonly forms: AnswerForms
  /** Returns a reader that says whether a stream is complete, and which error it contains. */
  readonly reader: () => Pick<StreamTap, 'push' | 'end' | 'error' | 'release'>
}

const ENDPOINTS: readonly EndpointForms[] = [
  { path: /^\/chat\/completions$/, forms: chatAnswerForms, reader: chatReader },
  { path: /^\/completions$/, forms: completionsAnswerForms, reader: chatReader },
  { path: /^\/messages(?:\?|$)/, forms: messagesAnswerForms, reader: () => new MessagesTap() },
  { path: /^\/responses$/, forms: responsesAnswerForms, reader: () => new ResponsesTap() },
  { path: /:(?:streamG|g)enerateContent\b/, forms: geminiAnswerForms, reader: () => new GeminiTap() },
  { path: /^\/converse(?:-stream)?$/, forms: converseAnswerForms, reader: converseReader },
  { path: /^\/images\/generations$/, forms: imageAnswerForms('image_generation'), reader: imageReader },
  { path: /^\/images\/edits$/, forms: imageAnswerForms('image_edit'), reader: imageReader },
  {
    path: /^\/audio\/transcriptions$/,
    forms: transcriptAnswerForms,
    reader: () => new MediaTap('text', 1),
  },
]

function imageReader(): MediaTap {
  return new MediaTap('image', 1)
}

function chatReader(): ChatTap {
  return new ChatTap({ swallowUsage: false })
}

function converseReader(): ReturnType<EndpointForms['reader']> {
  const decoder = converseCodec.streamDecoder()
  let last: ReplyEvent | undefined
  return {
    get error() {
      if (last?.kind !== 'failure') return undefined
      const { type, message, code, status, culprit } = last
      const data = JSON.stringify({ error: { type, message, code, status } })
      return { data, afterContent: false, ...(culprit && { culprit, isOfEnd: true as const }) }
    },
    push(chunk) {
      last = decoder.push(chunk).at(-1) ?? last
      return { forward: undefined, terminal: false }
    },
    end() {
      last = decoder.end().at(-1) ?? last
      return { ending: Buffer.alloc(0), cutBytes: 0, complete: last?.kind === 'end' }
    },
    release: () => decoder.release(),
  }
}

function formsOf({ path }: Pick<AttemptRequest, 'path'>): EndpointForms | undefined {
  return ENDPOINTS.find((endpoint) => endpoint.path.test(path))
}

/** Whether answers to a request can be made from the other form. */
export function hasOtherForm(request: Pick<AttemptRequest, 'path'>): boolean {
  return formsOf(request) !== undefined
}

/**
 * The events of the upstream's protocol for an answer that came as JSON although a stream was requested; undefined if
 * it is neither an answer nor an error.
 */
export function eventsOfAnswer(request: Pick<AttemptRequest, 'path'>, bytes: Buffer): Buffer | undefined {
  const text = bytes
    .toString()
    .replace(/^\u{feff}/u, '')
    .trim()
  // A list of Gemini's responses is a collected stream.
  const list = text.startsWith('[') ? listIn(text) : undefined
  if (list) return Buffer.from(list.map((one) => `data: ${JSON.stringify(one)}\n\n`).join(''))
  const whole = parseRecord(text)
  const forms = formsOf(request)?.forms
  if (!whole || !forms) return undefined
  const isAnswer =
    typeof whole['text'] === 'string' ||
    CONTENTS.some((name) => asRecord(whole[name]) ?? Array.isArray(whole[name]))
  const error = errorInAnswer(whole, isAnswer)
  if (isAnswer && isReplyWith(error)) return Buffer.from(forms.frames(whole, { includeUsage: true }))
  if (!error && !('promptFeedback' in whole)) return undefined
  return Buffer.from(`data: ${error?.data ?? JSON.stringify(whole)}\n\n`)
}

/** Members of answers that have their content, besides `text`. */
const CONTENTS = ['choices', 'content', 'output', 'candidates', 'data'] as const

function listIn(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * The JSON of the upstream's protocol for an answer that came as events although a stream was not requested: the
 * answer, or the error in the stream; undefined if it was cut.
 */
export function answerOfEvents(request: Pick<AttemptRequest, 'path'>, bytes: Buffer): Buffer | undefined {
  const endpoint = formsOf(request)
  if (!endpoint) return undefined
  const reader = endpoint.reader()
  reader.push(bytes)
  const { complete } = reader.end()
  reader.release()
  if (reader.error && !reader.error.isOfEnd) return Buffer.from(reader.error.data)
  const whole = complete || reader.error ? endpoint.forms.whole(parseEvents(bytes.toString())) : undefined
  return whole && Buffer.from(JSON.stringify(whole))
}

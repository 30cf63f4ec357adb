import { errorInAnswer } from '@sluice/wire/answer-error'
import { parseRecord } from '@sluice/wire/json/record'
import { NO_USAGE } from '@sluice/wire/usage'
import { GatewayError } from '../../errors.ts'
import { JsonOutline } from '@sluice/wire/json/json-outline'
import {
  readFlagField,
  formFields,
  jsonTranscript,
  MediaTap,
  requireModelField,
  plainTranscript,
  readTextField,
  type TranscriptFacts,
} from '@sluice/wire/media'
import type { StreamError } from '@sluice/wire/sse/stream-tap'
import type { RecordingLength, RecordingLengths } from './recording-length.ts'
import type {
  ChargedUsage,
  PassthroughOutput,
  PassthroughResponses,
  Passthrough,
  MeasuredCall,
} from '../../call/dialects/passthrough.ts'
import { EventPassthrough } from './event-passthrough.ts'
import { WithheldChunk } from '../../call/dialects/withhold-end.ts'
import type { FormDialect } from '../../call/dialects/dialect.ts'
import { editableFormBody, createFormMediaDialect, parsedRequestOf } from './media-request.ts'

/**
 * Tokens per second of audio: the usual number, and the maxima for which quota is reserved, for the audio and
 * for its transcript.
 */
const TOKENS_PER_SECOND = 10
const HELD_TOKENS_PER_SECOND = 32
const HELD_OUTPUT_PER_SECOND = 8
const MIN_HELD_OUTPUT = 64
/**
 * Bytes at the end of a transcript that are kept, because its last subtitle shows how long the recording is.
 */
const TAIL_BYTES = 65_536
/** Matches JSON members by which a response is recognised as a transcript. */
const BEGUN = /"(?:text|task|segments|words|duration)"\s*:/
const BYTES_PER_TOKEN = 4

/** Endpoint for transcripts and translations of a recording. */
export const transcriptionsDialect = (
  path: '/audio/transcriptions' | '/audio/translations',
  lengths: RecordingLengths,
): FormDialect =>
  createFormMediaDialect('transcriptions', async (form, { caller }) => {
    const fields = formFields(form.parts)
    const model = requireModelField(fields)
    const stream = readFlagField(fields, 'stream')
    const prompt = readTextField(fields, 'prompt') ?? ''
    const [file, second] = form.parts.filter(({ name }) => name === 'file')
    if (!file) throw new GatewayError('invalid_request', "'file' is required.")
    if (second) throw new GatewayError('invalid_request', "the form has two fields 'file'")
    const read = await lengths.measure(caller.token.id, form.bytes, file.start, file.end - file.start)
    const length = { ...read, seconds: Math.max(1, Math.ceil(read.seconds)) }
    return parsedRequestOf({
      model,
      path,
      body: editableFormBody(form),
      stream,
      prompt,
      fileTokens: length.seconds * HELD_TOKENS_PER_SECOND,
      outputTokens: length.seconds * HELD_OUTPUT_PER_SECOND + MIN_HELD_OUTPUT,
      measured: {
        prompt: { seconds: length.seconds },
        bounds: { seconds: length.seconds, hasMedia: true },
      },
      passed: transcriptResponses(length, readTextField(fields, 'response_format') === 'text'),
    })
  })

function transcriptResponses(length: RecordingLength, isText: boolean): PassthroughResponses {
  return {
    about: 'transcript',
    isText,
    accept: 'application/json, text/plain, text/event-stream',
    begin(contentType) {
      if (/^text\/html\b/i.test(contentType)) return undefined
      if (/^text\/event-stream\b/i.test(contentType)) {
        const tap = new MediaTap('text', 1)
        return new EventPassthrough(tap, (call) => {
          const { reported: usage, text } = tap
          return measureTranscript(call, length, { ...NO_FACTS, usage, text })
        })
      }
      if (/^application\/(?:[\w.-]+\+)?json\b/i.test(contentType)) return new JsonPassthrough(length)
      return /^(?:text|application)\/|^$/i.test(contentType) ? new TextPassthrough(length) : undefined
    },
    measureUnanswered: (call) => measureTranscript(call, length, NO_FACTS),
  }
}

const NO_FACTS: TranscriptFacts = {
  isValid: false,
  error: undefined,
  usage: undefined,
  seconds: 0,
  lastCue: 0,
  text: '',
}

/** Passes a transcript in JSON through to the client. */
class JsonPassthrough implements Passthrough {
  error: StreamError | undefined
  readonly #length: RecordingLength
  // The lists of words and segments grow with the recording, and nothing in them is charged.
  readonly #outline = new JsonOutline(1)
  readonly #held = new WithheldChunk()
  #hasBegun = false

  constructor(length: RecordingLength) {
    this.#length = length
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  get hasContent(): boolean {
    return this.#hasBegun
  }

  push(chunk: Buffer): PassthroughOutput {
    this.#outline.push(chunk)
    this.#hasBegun ||= BEGUN.test(this.#outline.text ?? '')
    return { forward: this.#held.push(chunk), isOver: false }
  }

  end(): boolean {
    const { isValid, error } = jsonTranscript(this.#outline.text ?? '')
    this.error = error && { ...error, afterContent: this.#hasBegun }
    return isValid
  }

  rest(): Buffer {
    return this.#held.rest()
  }

  measure(call: MeasuredCall): Promise<ChargedUsage> {
    return measureTranscript(call, this.#length, jsonTranscript(this.#outline.text ?? ''))
  }
}

/** Passes a transcript that is plain text or subtitles through to the client. */
class TextPassthrough implements Passthrough {
  error: StreamError | undefined
  readonly #length: RecordingLength
  readonly #held = new WithheldChunk()
  #tail = ''
  #bytes = 0

  constructor(length: RecordingLength) {
    this.#length = length
  }

  // A small text that looks like JSON may be an error.
  get hasBegun(): boolean {
    return this.#bytes > TAIL_BYTES || /^\s*[^\s{]/.test(this.#tail)
  }

  get hasContent(): boolean {
    return this.#bytes > 0
  }

  push(chunk: Buffer): PassthroughOutput {
    this.#bytes += chunk.length
    this.#tail = (this.#tail + chunk.toString('latin1')).slice(-TAIL_BYTES)
    return { forward: this.#held.push(chunk), isOver: false }
  }

  /** Returns true in any case, because a recording without speech has an empty transcript. */
  end(): boolean {
    const whole = this.hasBegun ? undefined : parseRecord(Buffer.from(this.#tail, 'latin1').toString())
    const error = errorInAnswer(whole, false)
    this.error = error && { ...error, afterContent: false }
    return true
  }

  rest(): Buffer {
    return this.#held.rest()
  }

  measure(call: MeasuredCall): Promise<ChargedUsage> {
    return measureTranscript(call, this.#length, plainTranscript(this.#tail), this.#bytes)
  }
}

/**
 * Resolves to the usage to charge: the reported tokens; if none were reported, the seconds of the recording
 * as stated in the response, otherwise as read from the file, but at least up to the last subtitle. If
 * seconds have no price, tokens are estimated from them.
 */
async function measureTranscript(
  { plan: { rate }, services: { count } }: MeasuredCall,
  length: RecordingLength,
  { usage: reported, seconds: stated, lastCue, text }: TranscriptFacts,
  textBytes = 0,
): Promise<ChargedUsage> {
  const reportedSeconds = reported?.seconds || stated
  const seconds = reportedSeconds || Math.max(length.seconds, lastCue)
  const hasTokens = reported !== undefined && reported.input + reported.cacheRead + reported.output > 0
  if (hasTokens) return { usage: { ...reported, seconds }, isEstimate: false }
  const isEstimate = reportedSeconds === 0 && length.isEstimate
  if (rate.price.second.digits > 0n || !rate.perToken) return { usage: { ...NO_USAGE, seconds }, isEstimate }
  const input = seconds * TOKENS_PER_SECOND
  const output = textBytes > 0 ? Math.ceil(textBytes / BYTES_PER_TOKEN) : await count.count(text)
  return { usage: { ...NO_USAGE, input, audioInput: input, output, seconds }, isEstimate: true }
}

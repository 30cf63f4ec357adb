import { addUsage, NO_USAGE, type Usage } from '../usage.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { type AnswerError, errorInAnswer } from '../answer-error.ts'
import { isErrorObject } from '../reply-facts.ts'
import { isErrorEvent } from '../sse/frame-splitter.ts'
import type { FrameAction } from '../sse/frame-loop.ts'
import { StreamTap } from '../sse/stream-tap.ts'
import type { ErrorContent } from '../upstream-error.ts'
import { JsonOutline } from '../json/json-outline.ts'
import {
  plausibleCountAt,
  type UpstreamCounts,
  numbersOfReport,
  largestCount,
  readInclusiveUsage,
  withCredibleTotal,
} from '../reported-usage.ts'

/**
 * Matches the events that complete an image, a speech or a transcript. `PARTIAL` and `TEXT` match events with
 * a part of one of these.
 */
const FINAL = /^(?:image_generation|image_edit)\.completed$|^(?:speech\.audio|transcript\.text)\.done$/
const PARTIAL = /^(?:image_generation|image_edit)\.partial_image$|^speech\.audio\.delta$/
const TEXT = /^transcript\.text\.(?:delta|segment)$/
const DONE = '[DONE]'

/**
 * Watches a stream of images, speech or a transcript. The stream ends with its last final event, which is
 * held back together with everything after it, such as `[DONE]`.
 */
export class MediaTap extends StreamTap {
  /** Sum of the usage of all final events. */
  reported: Usage | undefined
  /** Number of final events so far, and number of partial events with content so far. */
  finals = 0
  partials = 0
  /** Size and quality of the image in the last final event. */
  size: string | undefined
  quality: string | undefined
  readonly #output: OutputModality
  readonly #expectedFinals: number

  /** `expectedFinals` is the number of requested images. */
  constructor(output: OutputModality, expectedFinals: number) {
    super()
    this.#output = output
    this.#expectedFinals = expectedFinals
  }

  get sawFinish(): boolean {
    return this.finals > 0
  }

  /** Whether anything was forwarded that can be charged. */
  get hasContent(): boolean {
    return this.finals + this.partials + this.contentFrames > 0
  }

  /** Returns an event that OpenAI's client libraries treat as an error. */
  failureFrame({ type, code, message }: ErrorContent): Buffer {
    const error = { type, code, message, param: null }
    return Buffer.from(`event: error\ndata: ${JSON.stringify({ error })}\n\n`)
  }

  protected read(data: string, frame: string): FrameAction {
    if (data === DONE) {
      this.done = true
      return 'end'
    }
    const event = parseRecord(data)
    if (isErrorEvent(frame) || (event && isErrorObject(event))) {
      this.error = { data, afterContent: this.hasContent }
      return 'end'
    }
    const type = event?.['type']
    if (!event || typeof type !== 'string') return 'forward'
    if (FINAL.test(type)) return this.#takeFinal(event)
    if (PARTIAL.test(type)) this.partials++
    if (TEXT.test(type)) this.emit(0, textOf(event['delta'] ?? event['text']))
    return 'forward'
  }

  protected pieceOf(): undefined {
    return undefined
  }

  protected isTerminator(data: string): boolean {
    return data === DONE || FINAL.test(textOf(parseRecord(data)?.['type']))
  }

  #takeFinal(event: Readonly<Record<string, unknown>>): FrameAction {
    this.finals++
    const usage = readMediaUsage(event['usage'], this.#output)
    if (usage) this.reported = this.reported ? addUsage(this.reported, usage) : usage
    this.size = textOf(event['size']) || this.size
    this.quality = textOf(event['quality']) || this.quality
    if (this.emittedBytes === 0) this.emit(0, textOf(event['text']))
    if (this.finals < this.#expectedFinals) return 'forward'
    this.done = true
    return 'end'
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

const BEGUN = /"data"\s*:\s*\[\s*\{/
const IMAGE = /(?<!\\)"(?:b64_json|url)"\s*:\s*"/g

/** What a complete response with images states: its images, its usage, and its error. */
export interface ImageFacts {
  /** Number of images; 0 if the response contains no list of images. */
  readonly images: number
  readonly error: AnswerError | undefined
  readonly usage: Usage | undefined
  readonly size: string | undefined
  readonly quality: string | undefined
}

/** Reads a response with images while it streams. Only an outline of limited size is kept in memory. */
export class ImageReply {
  readonly #outline = new JsonOutline()
  #hasBegun = false

  push(bytes: Buffer): void {
    this.#outline.push(bytes)
    this.#hasBegun ||= BEGUN.test(this.#outline.text ?? '')
  }

  /** Whether the list of images has begun. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Number of images whose data has begun; the last one may be incomplete. */
  get begun(): number {
    return this.#outline.text?.match(IMAGE)?.length ?? 0
  }

  /** Number of images, error, usage, size and quality. Call this when the response is complete. */
  get facts(): ImageFacts {
    const reply = parseRecord(this.#outline.text ?? '') ?? {}
    const data = Array.isArray(reply['data']) ? (reply['data'] as readonly unknown[]) : []
    const images = data.filter(isImage).length
    return {
      images,
      error: errorInAnswer(reply, images > 0),
      usage: readMediaUsage(reply['usage'], 'image'),
      size: textIn(reply['size']),
      quality: textIn(reply['quality']),
    }
  }
}

function isImage(value: unknown): boolean {
  const { b64_json: base64, url } = asRecord(value) ?? {}
  return [base64, url].some((one) => typeof one === 'string' && one !== '')
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The facts of a complete transcript that determine its cost. */
export interface TranscriptFacts {
  readonly isValid: boolean
  readonly error: AnswerError | undefined
  readonly usage: Usage | undefined
  /** Duration of the recording in seconds as the response states it; 0 if it does not. */
  readonly seconds: number
  /** Second at which the last subtitle ends. The recording is at least this long. */
  readonly lastCue: number
  /** The text, for counting tokens. */
  readonly text: string
}

/** Finds the end times of subtitles in SubRip and WebVTT: `00:01:02,345`, `01:02.345`. */
const CUE_END = /-->[ \t]*(?:(\d{1,3}):)?(\d{2}):(\d{2})[.,](\d{3})/g

/** Reads a transcript in JSON: `json`, `verbose_json` or `diarized_json`. */
export function jsonTranscript(body: string): TranscriptFacts {
  const reply = parseRecord(body)
  const text = reply?.['text']
  const error = errorInAnswer(reply, typeof text === 'string')
  return {
    isValid: typeof text === 'string' && !error,
    error,
    usage: readMediaUsage(reply?.['usage'], 'text'),
    seconds: secondsIn(reply?.['duration']),
    lastCue: 0,
    text: typeof text === 'string' ? text : '',
  }
}

/** Reads a transcript as text: plain, SubRip or WebVTT. */
export function plainTranscript(body: string): TranscriptFacts {
  let lastCue = 0
  for (const [, hours = '0', minutes, rest, thousandths] of body.matchAll(CUE_END)) {
    const end = Number(hours) * 3600 + Number(minutes) * 60 + Number(rest) + Number(thousandths) / 1000
    lastCue = Math.max(lastCue, secondsIn(end))
  }
  return { isValid: true, error: undefined, usage: undefined, seconds: 0, lastCue, text: body }
}

const NONE: UpstreamCounts = {}

/**
 * The modality that an endpoint generates. Output tokens count as this modality if the usage does not state
 * theirs.
 */
type OutputModality = 'text' | 'audio' | 'image'

/**
 * Reads the usage of a response for images or audio: its tokens by modality, or its seconds; undefined if it
 * reports neither. In transcriptions, `input_token_details` is written in the singular.
 */
export function readMediaUsage(value: unknown, output: OutputModality): Usage | undefined {
  const usage = asRecord(value)
  if (!usage) return undefined
  const seconds = Math.max(secondsIn(usage['seconds']), secondsIn(usage['prompt_audio_seconds']))
  const inputDetails = details(usage, 'input_tokens_details', 'input_token_details', 'prompt_tokens_details')
  const outputDetails = details(usage, 'output_tokens_details', 'output_token_details')
  const reported = readInclusiveUsage({
    ...usage,
    input_tokens_details: inputDetails,
    output_tokens_details: outputDetails,
  })
  const tokens = reported && withCredibleTotal(reported)
  if (!tokens || tokens.outputIsUnknown || tokens.input + tokens.cacheRead + tokens.output === 0)
    return seconds > 0 ? { ...NO_USAGE, seconds } : undefined
  return {
    ...numbersOfReport(tokens),
    seconds,
    ...outputModalities(tokens.output, outputDetails, output),
  }
}

function outputModalities(
  tokens: number,
  stated: UpstreamCounts,
  output: OutputModality,
): Pick<Usage, 'audioOutput' | 'imageOutput'> {
  const text = largestCount(stated, 'text_tokens', 'reasoning_tokens')
  const audio = plausibleCountAt(stated, 'audio_tokens')
  const image = plausibleCountAt(stated, 'image_tokens')
  if (text + audio + image === 0)
    return { audioOutput: output === 'audio' ? tokens : 0, imageOutput: output === 'image' ? tokens : 0 }
  const audioOutput = Math.min(audio, tokens)
  return { audioOutput, imageOutput: Math.min(image, tokens - audioOutput) }
}

function details(usage: UpstreamCounts, ...names: readonly string[]): UpstreamCounts {
  for (const name of names) {
    const found = asRecord(usage[name])
    if (found) return found
  }
  return NONE
}

/** Maximum plausible duration of a recording in seconds: one day. */
const MAX_SECONDS = 86_400

/** Seconds, rounded up as providers do; 0 if the duration is implausible. */
function secondsIn(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= MAX_SECONDS ? Math.ceil(value) : 0
}

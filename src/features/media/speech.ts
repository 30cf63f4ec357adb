import { NO_USAGE } from '@sluice/wire/usage'
import { GatewayError } from '../../errors.ts'
import {
  type Fields,
  jsonFields,
  MediaTap,
  requireModelField,
  readTextField,
  SPEECH_REQUEST,
} from '@sluice/wire/media'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { RecordingLengths } from './recording-length.ts'
import type {
  ChargedUsage,
  PassthroughOutput,
  PassthroughResponses,
  Passthrough,
  MeasuredCall,
} from '../../call/dialects/passthrough.ts'
import { EventPassthrough } from './event-passthrough.ts'
import { WithheldByte } from '../../call/dialects/withhold-end.ts'
import type { Dialect } from '../../call/dialects/dialect.ts'
import { editableJsonBody, createJsonMediaDialect, parsedRequestOf } from './media-request.ts'

/** Characters per second of slow speech and of normal speech. */
const SLOW_CHARACTERS = 5
const USUAL_CHARACTERS = 15
const SLOWEST_SPEED = 0.25
/** Tokens per second of speech: the usual number, and the maximum for which quota is reserved. */
const TOKENS_PER_SECOND = 20.8
const HELD_TOKENS_PER_SECOND = 32
/** Bytes per second of raw samples: 24 kHz, 16 bits, mono. */
const PCM_BYTES_PER_SECOND = 48_000
/** Bytes at the start of the response from which its duration is estimated. */
const SAMPLE_BYTES = 262_144

/** Endpoint that converts text to speech. */
export const speechDialect = (lengths: RecordingLengths): Dialect =>
  createJsonMediaDialect('speech', SPEECH_REQUEST, (scan) => {
    const fields = jsonFields(scan)
    const model = requireModelField(fields)
    const input = readTextField(fields, 'input')
    if (input === undefined) throw new GatewayError('invalid_request', "'input' is required.")
    const characters = codePoints(input)
    const seconds = Math.ceil(characters / SLOW_CHARACTERS / speedOf(fields)) + 1
    const isRaw = readTextField(fields, 'response_format') === 'pcm'
    return parsedRequestOf({
      model,
      path: '/audio/speech',
      body: editableJsonBody(scan),
      stream: readTextField(fields, 'stream_format') === 'sse',
      prompt: `${input}\n${readTextField(fields, 'instructions') ?? ''}`,
      fileTokens: 0,
      outputTokens: seconds * HELD_TOKENS_PER_SECOND,
      measured: { prompt: { characters }, bounds: { characters, seconds, hasMedia: true } },
      passed: speechResponses(characters, isRaw, lengths),
    })
  })

// Providers count code points, so a letter with a hundred accents is more than one character.
function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count += 1
  return count
}

function speedOf(fields: Fields): number {
  const speed = fields.get('speed')
  return typeof speed === 'number' && speed > 0 ? Math.max(SLOWEST_SPEED, Math.min(1, speed)) : 1
}

function speechResponses(
  characters: number,
  isRaw: boolean,
  lengths: RecordingLengths,
): PassthroughResponses {
  const unheard = (): number => 0
  return {
    about: undefined,
    accept: 'application/octet-stream, text/event-stream',
    begin(contentType) {
      if (/^text\/event-stream\b/i.test(contentType)) {
        const tap = new MediaTap('audio', 1)
        return new EventPassthrough(tap, (call) => {
          const { reported } = tap
          if (reported) return { usage: { ...reported, characters }, isEstimate: false }
          return measureSpeech(call, characters, () => Math.ceil(characters / USUAL_CHARACTERS))
        })
      }
      if (/^(?:audio|video)\/|^application\/(?:octet-stream|ogg)\b|^$/i.test(contentType))
        return new SpeechPassthrough(characters, isRaw || /^audio\/(?:pcm|l16)\b/i.test(contentType), lengths)
      return undefined
    },
    measureUnanswered: (call) => measureSpeech(call, characters, unheard),
  }
}

/** Passes generated audio through as plain bytes, and measures its duration. */
class SpeechPassthrough implements Passthrough {
  readonly error: undefined
  readonly #characters: number
  readonly #isRaw: boolean
  readonly #lengths: RecordingLengths
  readonly #held = new WithheldByte()
  readonly #sample = new ChunkList()
  #bytes = 0

  constructor(characters: number, isRaw: boolean, lengths: RecordingLengths) {
    this.#characters = characters
    this.#isRaw = isRaw
    this.#lengths = lengths
  }

  get hasBegun(): boolean {
    return this.#bytes > 0
  }

  get hasContent(): boolean {
    return this.#bytes > 0
  }

  push(chunk: Buffer): PassthroughOutput {
    this.#bytes += chunk.length
    const missing = SAMPLE_BYTES - this.#sample.length
    if (missing > 0 && !this.#isRaw) this.#sample.add(chunk.subarray(0, missing))
    return { forward: this.#held.push(chunk), isOver: false }
  }

  end(): boolean {
    return this.#bytes > 0
  }

  rest(): Buffer {
    return this.#held.rest()
  }

  measure(call: MeasuredCall): ChargedUsage | Promise<ChargedUsage> {
    return measureSpeech(call, this.#characters, () => this.#seconds(call.client))
  }

  async #seconds(client: number): Promise<number> {
    if (this.#isRaw) return Math.ceil(this.#bytes / PCM_BYTES_PER_SECOND)
    const sample = this.#sample.take()
    if (sample.length === 0) return 0
    const { seconds } = await this.#lengths.measure(client, sample, 0, sample.length)
    return Math.ceil(seconds * (this.#bytes / sample.length))
  }
}

/**
 * Resolves to the usage to charge, depending on what has a price: characters, otherwise seconds of audio,
 * otherwise tokens estimated from the seconds.
 */
async function measureSpeech(
  call: MeasuredCall,
  characters: number,
  secondsHeard: () => number | Promise<number>,
): Promise<ChargedUsage> {
  const { rate } = call.plan
  const { price } = rate
  const isByCharacter = price.characters.digits > 0n || (price.second.digits === 0n && !rate.perToken)
  if (isByCharacter) return { usage: { ...NO_USAGE, characters }, isEstimate: false }
  const seconds = await secondsHeard()
  if (price.second.digits > 0n && seconds > 0)
    return { usage: { ...NO_USAGE, characters, seconds }, isEstimate: false }
  const output = Math.ceil(seconds * TOKENS_PER_SECOND)
  const input = rate.perToken ? await call.countChargedPrompt() : 0
  return {
    usage: { ...NO_USAGE, input, output, audioOutput: output, characters, seconds },
    isEstimate: true,
  }
}

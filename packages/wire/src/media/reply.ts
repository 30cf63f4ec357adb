import { addedUsage, type Usage } from '../usage.ts'
import { parseRecord } from '../json/record.ts'
import { isError } from '../reply-facts.ts'
import { isErrorEvent } from '../sse/frame-splitter.ts'
import type { Verdict } from '../sse/frame-loop.ts'
import { StreamTap } from '../sse/stream-tap.ts'
import type { ErrorParts } from '../upstream-error.ts'
import { type OutputModality, readMediaUsage } from './usage.ts'

/** Types of the events that end an image, a speech or a transcript, and of the partial ones before them. */
const FINAL = /^(?:image_generation|image_edit)\.completed$|^(?:speech\.audio|transcript\.text)\.done$/
const PARTIAL = /^(?:image_generation|image_edit)\.partial_image$|^speech\.audio\.delta$/
const TEXT = /^transcript\.text\.(?:delta|segment)$/
const DONE = '[DONE]'

/**
 * Watches a stream of images, speech or a transcript. The stream ends with its last final event; what
 * follows, such as `[DONE]`, is held back with it.
 */
export class MediaTap extends StreamTap {
  /** Sum of the usage of all final events. */
  reported: Usage | undefined
  /** Number of final events so far, and of partial events with content. */
  finals = 0
  partials = 0
  /** Format of the image in the last final event. */
  size: string | undefined
  quality: string | undefined
  readonly #output: OutputModality
  readonly #expectedFinals: number

  /** `expectedFinals`: the number of images requested. */
  constructor(output: OutputModality, expectedFinals: number) {
    super()
    this.#output = output
    this.#expectedFinals = expectedFinals
  }

  get sawFinish(): boolean {
    return this.finals > 0
  }

  /** Whether anything chargeable was forwarded. */
  get hasContent(): boolean {
    return this.finals + this.partials + this.contentFrames > 0
  }

  /** Returns an event that OpenAI's client libraries treat as an error. */
  failureFrame(error: ErrorParts): Buffer {
    return Buffer.from(`event: error\ndata: ${JSON.stringify({ error: { ...error, param: null } })}\n\n`)
  }

  protected read(data: string, frame: string): Verdict {
    if (data === DONE) {
      this.done = true
      return 'end'
    }
    const event = parseRecord(data)
    if (isErrorEvent(frame) || (event && isError(event['error']))) {
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

  #takeFinal(event: Readonly<Record<string, unknown>>): Verdict {
    this.finals++
    const usage = readMediaUsage(event['usage'], this.#output)
    if (usage) this.reported = this.reported ? addedUsage(this.reported, usage) : usage
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

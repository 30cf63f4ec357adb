import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import { highestImagePrice } from '../../domain/price.ts'
import {
  type Fields,
  readFlagField,
  formFields,
  ImageReply,
  readIntegerField,
  jsonFields,
  MediaTap,
  requireModelField,
  readTextField,
  IMAGES_REQUEST,
} from '@sluice/wire/media'
import type { StreamError } from '@sluice/wire/sse/stream-tap'
import type {
  ChargedUsage,
  PassthroughOutput,
  PassthroughResponses,
  Passthrough,
  MeasuredCall,
} from '../../call/dialects/passthrough.ts'
import { EventPassthrough } from './event-passthrough.ts'
import { WithheldChunk } from '../../call/dialects/withhold-end.ts'
import {
  type EditableBody,
  editableFormBody,
  createFormMediaDialect,
  editableJsonBody,
  createJsonMediaDialect,
  parsedRequestOf,
} from './media-request.ts'
import type { Dialect, FormDialect } from '../../call/dialects/dialect.ts'
import type { ParsedRequest } from '../../call/request-stages.ts'

/** Maximum images of one request; the providers allow ten. */
const MAX_IMAGES = 128
const MAX_PARTIALS = 10
/** Output tokens of an image in the most expensive common format; below it, those of a partial image. */
const IMAGE_TOKENS = 6_240
const PARTIAL_TOKENS = 100
/** Maximum number of tokens that an image in the prompt is counted as. */
const INPUT_IMAGE_TOKENS = 6_500

type Path = '/images/generations' | '/images/edits' | '/images/variations'

/** Image endpoints with JSON requests. */
export const imagesByJson = (path: Path): Dialect =>
  createJsonMediaDialect('images', IMAGES_REQUEST, (scan) => {
    const fields = jsonFields(scan)
    const images = fields.get('images') ?? fields.get('image')
    const inputs = Array.isArray(images) ? images.length : images === undefined ? 0 : 1
    return relayedImages(
      path,
      fields,
      editableJsonBody(scan),
      inputs + (fields.get('mask') === undefined ? 0 : 1),
    )
  })

/** Image endpoints with forms. */
export const imagesByForm = (path: Path): FormDialect =>
  createFormMediaDialect('images', (form) => {
    const files = form.parts.filter(({ filename }) => filename !== undefined).length
    return relayedImages(path, formFields(form.parts), editableFormBody(form), files)
  })

/** Fields of a request on which its charge may depend. */
interface ImageRequest {
  readonly n: number
  readonly size: string | undefined
  readonly quality: string | undefined
}

function relayedImages(path: Path, fields: Fields, body: EditableBody, inputs: number): ParsedRequest {
  const model = requireModelField(fields)
  const n = readIntegerField(fields, 'n', 1, MAX_IMAGES) ?? 1
  const partials = readIntegerField(fields, 'partial_images', 0, MAX_PARTIALS) ?? 0
  const request = { n, size: readTextField(fields, 'size'), quality: readTextField(fields, 'quality') }
  return parsedRequestOf({
    model,
    path,
    body,
    stream: readFlagField(fields, 'stream'),
    prompt: readTextField(fields, 'prompt') ?? '',
    fileTokens: inputs * INPUT_IMAGE_TOKENS,
    outputTokens: n * (IMAGE_TOKENS + partials * PARTIAL_TOKENS),
    measured: { prompt: { images: 1 }, bounds: { images: n, hasMedia: true } },
    passed: imageResponses(request),
  })
}

function imageResponses(request: ImageRequest): PassthroughResponses {
  return {
    about: 'images',
    accept: 'application/json, text/event-stream',
    begin(contentType) {
      if (/^text\/event-stream\b/i.test(contentType)) return imageEvents(request)
      return /^(?:application\/(?:[\w.-]+\+)?json\b|$)/i.test(contentType)
        ? new ImagePassthrough(request)
        : undefined
    },
    measureUnanswered: (call) => measureImages(call, request, 0, undefined),
  }
}

function imageEvents(request: ImageRequest): Passthrough {
  const tap = new MediaTap('image', request.n)
  return new EventPassthrough(tap, (call, isComplete) => {
    const { reported, size = request.size, quality = request.quality } = tap
    const images = isComplete ? tap.finals : Math.max(tap.finals, tap.hasContent ? 1 : 0)
    return measureImages(call, { ...request, size, quality }, images, reported)
  })
}

/** Passes through a response with images that is not a stream, whatever its size. */
class ImagePassthrough implements Passthrough {
  readonly #request: ImageRequest
  readonly #reply = new ImageReply()
  readonly #held = new WithheldChunk()
  error: StreamError | undefined

  constructor(request: ImageRequest) {
    this.#request = request
  }

  get hasBegun(): boolean {
    return this.#reply.hasBegun
  }

  get hasContent(): boolean {
    return this.#reply.hasBegun
  }

  push(chunk: Buffer): PassthroughOutput {
    this.#reply.push(chunk)
    return { forward: this.#held.push(chunk), isOver: false }
  }

  end(): boolean {
    const { images, error } = this.#reply.facts
    this.error = error && { ...error, afterContent: false }
    return images > 0 && !error
  }

  rest(): Buffer {
    return this.#held.rest()
  }

  measure(call: MeasuredCall, isComplete: boolean): Promise<ChargedUsage> {
    const { usage, images, size = this.#request.size, quality = this.#request.quality } = this.#reply.facts
    const count = isComplete ? images : this.#reply.begun
    return measureImages(call, { ...this.#request, size, quality }, count, usage)
  }
}

/**
 * Resolves to the usage to charge: the reported tokens; if none were reported, the number of images, or
 * estimated tokens if images have no price.
 */
async function measureImages(
  call: MeasuredCall,
  form: ImageRequest,
  images: number,
  reported: Usage | undefined,
): Promise<ChargedUsage> {
  if (reported) return { usage: { ...reported, images }, form, isEstimate: false }
  const { rate } = call.plan
  if (!rate.perToken || (images > 0 && highestImagePrice(rate.price.image).digits > 0n))
    return { usage: { ...NO_USAGE, images }, form, isEstimate: false }
  const output = images * IMAGE_TOKENS
  return {
    usage: { ...NO_USAGE, input: await call.countChargedPrompt(), output, imageOutput: output, images },
    form,
    isEstimate: true,
  }
}

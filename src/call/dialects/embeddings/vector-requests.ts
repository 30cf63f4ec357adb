import { addUsage, NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { DroppedFields } from '@sluice/wire/codec'
import type { ReplyFacts } from '@sluice/wire/reply-facts'
import { ChunkList } from '@sluice/wire/sse/chunk-list'
import type { StreamError } from '@sluice/wire/sse/stream-tap'
import type {
  EmbeddingsApi,
  UpstreamEmbedRequest,
  EmbedRequests,
  TextsToEmbed,
  VectorResponseReader,
  VectorResponseWriter,
} from '@sluice/wire/texts-to-embed'
import type { EmbedUpstream } from '../../../upstreams/embed-upstream.ts'
import { type ResponseEnding, throwNoStreams } from '../answer-reader.ts'
import type {
  ChargedUsage,
  PassthroughOutput,
  PassthroughResponses,
  Passthrough,
  MeasuredCall,
} from '../passthrough.ts'
import {
  embeddingsResponses,
  BufferedStart,
  measureByCounting,
  measureEmbeddings,
} from './embeddings-passthrough.ts'
import type { AttemptRequest } from '../../request-stages.ts'

/**
 * Creates a request for vectors. If there are too many texts for one, further requests are sent one after the
 * other.
 */
export function vectorRequest(
  { form, protocol, path, model }: EmbedUpstream,
  texts: TextsToEmbed,
  dropped: DroppedFields,
  writer: () => VectorResponseWriter,
): AttemptRequest {
  const requests = form.requests(texts, model, dropped)
  return {
    protocol,
    path,
    headers: [],
    body: requests[0].body,
    prompt: () => requests.flatMap((request) => request.texts).join('\n'),
    upstreamModel: model,
    dropped: [...dropped],
    passed: vectorsResponses(form, requests, writer),
    tap: throwNoStreams,
    reply: throwNoStreams,
  }
}

/**
 * Handles the responses to requests for vectors. If the client leaves before the first response, the first
 * request is charged.
 */
function vectorsResponses(
  form: EmbeddingsApi,
  requests: EmbedRequests,
  writer: () => VectorResponseWriter,
): PassthroughResponses {
  return embeddingsResponses(
    undefined,
    () => new ConvertedPassthrough(form, requests, writer()),
    (call) =>
      measureByCounting(call, NO_USAGE, () => call.services.count.count(requests[0].texts.join('\n'))),
  )
}

/** Writes vectors of several upstream responses as one response. */
class ConvertedPassthrough implements Passthrough {
  readonly #form: EmbeddingsApi
  readonly #writer: VectorResponseWriter
  readonly #texts: number
  /** The request whose response is being read. */
  #current: UpstreamEmbedRequest
  /** The requests that are still to be sent. */
  readonly #more: UpstreamEmbedRequest[]
  /** The texts of the requests that were answered. */
  readonly #answered: string[] = []
  readonly #held = new BufferedStart()
  readonly #written = new ChunkList()
  #reply: VectorResponseReader
  #facts: ReplyFacts | undefined
  #vectors = 0
  /** Sum of the reported usage; undefined if a response did not report any. */
  #usage: Usage | undefined = NO_USAGE
  #charged = NO_USAGE

  constructor(form: EmbeddingsApi, [first, ...more]: EmbedRequests, writer: VectorResponseWriter) {
    this.#form = form
    this.#writer = writer
    this.#current = first
    this.#more = more
    this.#texts = more.reduce((sum, { texts }) => sum + texts.length, first.texts.length)
    this.#reply = this.#nextReply()
  }

  get hasBegun(): boolean {
    return this.#held.isLarge
  }

  get hasContent(): boolean {
    return this.#held.isLarge
  }

  get error(): StreamError | undefined {
    return this.#facts?.error && { ...this.#facts.error, afterContent: this.hasBegun }
  }

  push(chunk: Buffer): PassthroughOutput {
    this.#reply.push(chunk)
    const forward = this.#written.length === 0 ? undefined : this.#held.push(this.#written.take())
    return { forward, isOver: false }
  }

  end(): boolean {
    this.#facts = this.#reply.end()
    const { usage, valid } = this.#facts
    if (valid) this.#usage = this.#usage && usage && addUsage(this.#usage, usage)
    return valid && (this.#more.length > 0 || this.#vectors === this.#texts)
  }

  next(): Buffer | undefined {
    const next = this.#more.shift()
    if (!next) return undefined
    this.#answered.push(...this.#current.texts)
    this.#current = next
    this.#reply = this.#nextReply()
    return next.body
  }

  rest(): Buffer {
    // Some responses can be parsed only at their end, so vectors may still have to be written.
    return Buffer.concat([this.#held.rest(), this.#written.take(), this.#writer.end(this.#charged)])
  }

  async measure(
    call: MeasuredCall,
    isComplete: boolean,
    ending: ResponseEnding,
    isSent: boolean,
  ): Promise<ChargedUsage> {
    const isGivenUp = ending === 'client_gone' || ending === 'stopped'
    const measure = await (isComplete
      ? measureEmbeddings(call, this.#usage)
      : this.#measureSent(call, (isSent && isGivenUp) || this.#reply.count > 0))
    this.#charged = measure.usage
    return measure
  }

  /** Resolves to the usage of the answered requests; if `isCurrentPaid`, also that of the current request. */
  #measureSent(call: MeasuredCall, isCurrentPaid: boolean): Promise<ChargedUsage> {
    const uncounted = this.#usage ? [] : this.#answered
    const texts = isCurrentPaid ? [...uncounted, ...this.#current.texts] : uncounted
    const reported = this.#usage ?? NO_USAGE
    if (texts.length === 0) return Promise.resolve({ usage: reported, isEstimate: false })
    return measureByCounting(call, reported, () => call.services.count.count(texts.join('\n')))
  }

  #nextReply(): VectorResponseReader {
    return this.#form.reading((vector) => {
      this.#vectors += 1
      this.#written.add(this.#writer.write(vector))
    })
  }
}

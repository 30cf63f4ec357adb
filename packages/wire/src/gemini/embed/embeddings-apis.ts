import { promptTokens, type Usage, NO_USAGE } from '../../usage.ts'
import { asRecord } from '../../json/record.ts'
import { VectorListReader, type RawVector } from '../../vectors.ts'
import type { ReplyFacts } from '../../reply-facts.ts'
import {
  type VectorResponseReader,
  type VectorResponseWriter,
  type EmbeddingsApi,
  embedRequests,
  splitTexts,
} from '../../texts-to-embed.ts'
import { embeddedUsage } from '../usage.ts'
import type { EmbedMethod } from './request.ts'
import { modelResourceName } from '../model-name.ts'
import { plausibleCountAt } from '../../reported-usage.ts'

/**
 * Creates a reader for responses of `embedContent` and `batchEmbedContents`. Only newer models report usage.
 */
export function vectorsReaderFor(onVector: (vector: RawVector) => void): VectorResponseReader {
  return new VectorListReader('values', (reply) => embeddedUsage(asRecord(reply['usageMetadata'])), onVector)
}

/** Reads a response of `embedContent` or `batchEmbedContents` that is forwarded unchanged. */
export class EmbedReply {
  readonly #reading = vectorsReaderFor(() => {})
  /** Validity, error and usage of the response; undefined until it has ended. */
  facts: ReplyFacts | undefined

  /** Whether the response contains a vector so far. */
  get hasBegun(): boolean {
    return this.#reading.count > 0
  }

  /** The response read so far, without its vectors. */
  get outline(): string {
    return this.#reading.outline
  }

  /** Reads a chunk, and returns it for the client. */
  push(chunk: Buffer): Buffer {
    this.#reading.push(chunk)
    return chunk
  }

  /** Ends the response. Returns no bytes, because all were forwarded as they arrived. */
  end(): Buffer {
    this.facts = this.#reading.end()
    return NOTHING
  }
}

const NOTHING = Buffer.alloc(0)

/** Writes a response of `embedContent` or `batchEmbedContents`, one vector at a time. */
export class EmbedReplyWriter implements VectorResponseWriter {
  readonly #isSingle: boolean
  #count = 0

  constructor(method: EmbedMethod) {
    this.#isSingle = method === 'embedContent'
  }

  write({ text }: Pick<RawVector, 'text'>): Buffer {
    const before = this.#count++ > 0 ? ',' : this.#isSingle ? '{"embedding":' : '{"embeddings":['
    return Buffer.concat([Buffer.from(`${before}{"values":`), text, Buffer.from('}')])
  }

  end(charged: Usage): Buffer {
    const tokens = promptTokens(charged)
    const usage = JSON.stringify({ promptTokenCount: tokens, totalTokenCount: tokens })
    return Buffer.from(`${this.#isSingle ? '' : ']'},"usageMetadata":${usage}}`)
  }
}

/** Maximum number of texts in one request to an upstream. */
const MAX_TEXTS = 100

/** How embeddings are requested by `batchEmbedContents`: with up to 100 texts per request. */
export const batchEmbedContentsApi: EmbeddingsApi = {
  requests({ texts, dimensions, task }, upstreamModel) {
    const model = modelResourceName(upstreamModel)
    const bodyOf = (group: readonly string[]): object => ({
      requests: group.map((text) => ({
        model,
        content: { parts: [{ text }] },
        taskType: task,
        outputDimensionality: dimensions,
      })),
    })
    const groups = splitTexts(texts, MAX_TEXTS)
    return embedRequests(groups, bodyOf)
  },
  reading: vectorsReaderFor,
}

/**
 * Maximum number of texts, and of tokens, in one `:predict` request. Tokens are limited by the bytes of the
 * texts, because a text has at most as many tokens as bytes.
 */
const MAX_INSTANCES = 250
const MAX_TOKENS = 20_000

/** Matches the embedding models that accept only one text per `:predict` request. */
const SINGLE = /gemini-embedding/i

/**
 * How embeddings are requested by `:predict` on Vertex. Its responses state the number of tokens of each text
 * beside its vector.
 */
export const predictApi: EmbeddingsApi = {
  requests({ texts, dimensions, task }, upstreamModel) {
    const maxTexts = SINGLE.test(upstreamModel) ? 1 : MAX_INSTANCES
    const bodyOf = (group: readonly string[]): object => ({
      instances: group.map((content) => ({ content, task_type: task })),
      parameters: dimensions === undefined ? undefined : { outputDimensionality: dimensions },
    })
    const groups = splitTexts(texts, maxTexts, MAX_TOKENS)
    return embedRequests(groups, bodyOf)
  },
  reading: (onVector) => new VectorListReader('values', predictedUsage, onVector),
}

/**
 * How embeddings are requested by `:embedContent` on Vertex: with one text per request. Newer models have
 * this method instead of `:predict`.
 */
export const embedContentApi: EmbeddingsApi = {
  requests({ texts, dimensions, task }) {
    const config =
      dimensions === undefined && task === undefined
        ? undefined
        : { taskType: task, outputDimensionality: dimensions }
    const bodyOf = ([text]: readonly string[]): object => ({
      content: { parts: [{ text }] },
      embedContentConfig: config,
    })
    const groups = splitTexts(texts, 1)
    return embedRequests(groups, bodyOf)
  },
  reading: vectorsReaderFor,
}

function predictedUsage({ predictions }: Readonly<Record<string, unknown>>): Usage | undefined {
  if (!Array.isArray(predictions)) return undefined
  const input = predictions.reduce((sum: number, prediction: unknown) => sum + tokensOf(prediction), 0)
  return input > 0 ? { ...NO_USAGE, input } : undefined
}

function tokensOf(prediction: unknown): number {
  const embeddings = asRecord(asRecord(prediction)?.['embeddings'])
  return plausibleCountAt(asRecord(embeddings?.['statistics']) ?? {}, 'token_count')
}

import { errorInAnswer } from './answer-error.ts'
import { NO_USAGE } from './usage.ts'
import { VectorListReader, type RawVector } from './vectors.ts'
import { plausibleCountAt } from './reported-usage.ts'
import { type EmbeddingsApi, embedRequests, splitTexts, type VectorResponseReader } from './texts-to-embed.ts'
import { RESPONSE_LIMITS, scanObject } from './json/json-scan.ts'
import { asRecord, parseRecord } from './json/record.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { ReplyFacts } from './reply-facts.ts'
import { ChunkList } from './sse/chunk-list.ts'

/** Matches the models whose number of dimensions cannot be chosen. */
const FIXED_TITAN = /titan-embed-(?:text-v1|g1)/i

/**
 * Amazon Titan embeddings by `invoke`: one text per request; the response has the vector and its number of
 * tokens.
 */
export const titanEmbeddingsApi: EmbeddingsApi = {
  requests({ texts, dimensions, task }, upstreamModel, dropped) {
    if (task !== undefined) dropped.add('taskType')
    const isFixed = FIXED_TITAN.test(upstreamModel)
    if (isFixed && dimensions !== undefined) dropped.add('dimensions')
    const groups = splitTexts(texts, 1)
    const bodyOf = ([inputText]: readonly string[]): object => ({
      inputText,
      dimensions: isFixed ? undefined : dimensions,
    })
    return embedRequests(groups, bodyOf)
  },
  reading: (onVector) =>
    new VectorListReader(
      'embedding',
      (reply) => {
        const input = plausibleCountAt(reply, 'inputTextTokenCount')
        return input > 0 ? { ...NO_USAGE, input } : undefined
      },
      onVector,
    ),
}

/** Maximum number of texts in one request. */
const MAX_TEXTS = 96

/** Maximum number of JSON values in a response: more than the largest allowed response of any model has. */
const MAX_NODES = 1_000_000

/** The values of Cohere's required field `input_type`, by the purpose that the client states. */
const INPUT_TYPES: ReadonlyMap<string | undefined, string> = new Map([
  ['RETRIEVAL_QUERY', 'search_query'],
  ['QUESTION_ANSWERING', 'search_query'],
  ['FACT_VERIFICATION', 'search_query'],
  ['CODE_RETRIEVAL_QUERY', 'search_query'],
  ['CLASSIFICATION', 'classification'],
  ['CLUSTERING', 'clustering'],
])
const DEFAULT_INPUT_TYPE = 'search_document'

/** Matches the models whose number of dimensions cannot be chosen. */
const FIXED_COHERE = /embed-(?:english|multilingual)/i

/** Cohere embeddings by `invoke`: up to 96 texts per request. */
export const cohereEmbeddingsApi: EmbeddingsApi = {
  requests({ texts, dimensions, task }, upstreamModel, dropped) {
    const isFixed = FIXED_COHERE.test(upstreamModel)
    if (isFixed && dimensions !== undefined) dropped.add('dimensions')
    const groups = splitTexts(texts, MAX_TEXTS)
    const bodyOf = (group: readonly string[]): object => ({
      texts: group,
      input_type: INPUT_TYPES.get(task) ?? DEFAULT_INPUT_TYPE,
      embedding_types: ['float'],
      output_dimension: isFixed ? undefined : dimensions,
    })
    return embedRequests(groups, bodyOf)
  },
  reading: (onVector) => new CohereReading(onVector),
}

/** Reads a response. It is parsed as a whole, because it has at most 96 vectors, all in one field. */
class CohereReading implements VectorResponseReader {
  readonly #onVector: (vector: RawVector) => void
  readonly #chunks = new ChunkList()
  count = 0
  readonly outline = ''

  constructor(onVector: (vector: RawVector) => void) {
    this.#onVector = onVector
  }

  push(chunk: Buffer): void {
    this.#chunks.add(chunk)
  }

  end(): ReplyFacts {
    const bytes = this.#chunks.take()
    const scan = scanned(bytes)
    const vectors = (scan && vectorsIn(scan)) ?? []
    this.count = vectors.length
    for (const text of vectors) this.#onVector({ form: 'numbers', text: Buffer.from(text) })
    const units = asRecord(asRecord(scan?.value('meta'))?.['billed_units'])
    const input = plausibleCountAt(units ?? {}, 'input_tokens')
    const usage = input > 0 ? { ...NO_USAGE, input } : undefined
    const valid = vectors.length > 0
    const error = valid ? undefined : errorInAnswer(parseRecord(bytes.toString()), false)
    return { valid, error, usage, text: () => '' }
  }
}

/**
 * The vectors of a response: `embeddings` is a list of them, or an object whose field `float` is the list.
 */
function vectorsIn(scan: ScannedObject): string[] | undefined {
  const member = scan.span('embeddings')
  if (!member) return undefined
  const isByType = scan.kindOf(member.node) === 'object'
  const list: Node | undefined = isByType ? scan.memberOf(member.node, 'float') : member.node
  if (list === undefined || scan.kindOf(list) !== 'array') return undefined
  return scan.elements(list).map((node) => scan.textOf(node))
}

function scanned(bytes: Buffer): ScannedObject | undefined {
  try {
    return scanObject(bytes, { ...RESPONSE_LIMITS, nodes: MAX_NODES })
  } catch {
    return undefined
  }
}

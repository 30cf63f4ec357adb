import { asRecord, parseRecord } from '../json/record.ts'
import type { ReplyFacts } from '../reply-facts.ts'
import type { EmbeddingsApi, TextsToEmbed, VectorResponseReader } from '../texts-to-embed.ts'
import { type RawVector, VectorReader } from '../vectors.ts'
import { embeddingsFacts } from './reply.ts'
import { convertVector } from './vectors.ts'
import { reroutingMemberName } from '../upstream-settings.ts'
import type { DroppedFields } from '../codec.ts'
import { refuseField } from '../field-check.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'

/** Maximum number of bytes of vectors that are held back until the whole response states their order. */
const MAX_HELD_BYTES = 1_048_576

/**
 * How embeddings are requested from a server with `/embeddings` for clients of other protocols: all texts in
 * one request.
 */
export const openAiEmbeddingsApi: EmbeddingsApi = {
  requests: (texts, upstreamModel, dropped) => [
    { body: encodeTexts(texts, upstreamModel, dropped), texts: texts.texts },
  ],
  reading: (onVector) => new OrderedReading(onVector),
}

/**
 * Reads a response in which each vector has an index, the number of its text, before or after it. The vectors
 * are sorted by index. If they are too large to be held back, they are forwarded as they arrive, and a
 * response in another order is invalid.
 */
class OrderedReading implements VectorResponseReader {
  readonly #onVector: (vector: RawVector) => void
  readonly #reader: VectorReader
  #held: RawVector[] | undefined = []
  #heldBytes = 0

  constructor(onVector: (vector: RawVector) => void) {
    this.#onVector = onVector
    this.#reader = new VectorReader('embedding', {
      onVector: (vector) => this.#take({ form: 'numbers', text: convertVector(vector, 'numbers') }),
      onOther: () => {},
    })
  }

  get count(): number {
    return this.#reader.count
  }

  get outline(): string {
    return this.#reader.outline ?? ''
  }

  push(chunk: Buffer): void {
    this.#reader.push(chunk)
  }

  end(): ReplyFacts {
    this.#reader.end()
    const facts = embeddingsFacts(this.outline)
    const places = placesIn(this.outline)
    if (this.#held) {
      const held = this.#held.map((vector, at) => ({ vector, place: places[at] ?? at }))
      for (const { vector } of held.sort((a, b) => a.place - b.place)) this.#onVector(vector)
      this.#held = []
      return facts
    }
    return { ...facts, valid: facts.valid && places.every((place, at) => (place ?? at) === at) }
  }

  #take(vector: RawVector): void {
    if (!this.#held) return this.#onVector(vector)
    // Copied, because a part of the chunk would keep the whole chunk in memory.
    this.#held.push({ ...vector, text: Buffer.from(vector.text) })
    this.#heldBytes += vector.text.length
    if (this.#heldBytes <= MAX_HELD_BYTES) return
    for (const held of this.#held) this.#onVector(held)
    this.#held = undefined
  }
}

/** Returns the index that the response states for each vector; undefined for a vector without an index. */
function placesIn(outline: string): readonly (number | undefined)[] {
  const data = parseRecord(outline)?.['data']
  if (!Array.isArray(data)) return []
  return data.map((one: unknown) => {
    const index = asRecord(one)?.['index']
    return typeof index === 'number' ? index : undefined
  })
}

/** Fields of a request that are converted, or that say how the response must be written. */
const READ: ReadonlySet<string> = new Set(['model', 'input', 'dimensions', 'encoding_format', 'task_type'])

/**
 * Throws `invalid_request` if an input of a checked request is not a text. Token ids cannot be converted,
 * because they are valid only for one model.
 */
export function requireTextInputs(scan: ScannedObject): void {
  textsIn(scan)
}

/**
 * Reads a checked request, to convert it to another protocol. Adds the names of fields that cannot be
 * converted to `dropped`. Throws `invalid_request` if an input is not a text.
 */
export function decodeTexts(scan: ScannedObject, dropped: DroppedFields): TextsToEmbed {
  for (const key of scan.members.keys())
    if (!READ.has(key)) dropped.add(key === 'user' ? key : (reroutingMemberName(key) ?? 'unknown'))
  const texts = textsIn(scan).map((text) => scan.parse(text) as string)
  const task = scan.value('task_type')
  return {
    texts,
    dimensions: (scan.value('dimensions') ?? undefined) as number | undefined,
    task: typeof task === 'string' ? task : undefined,
  }
}

function textsIn(scan: ScannedObject): readonly Node[] {
  const node = scan.span('input')?.node as Node
  const nodes = scan.kindOf(node) === 'array' ? scan.elements(node) : [node]
  if (nodes.some((element) => scan.kindOf(element) !== 'string'))
    refuseField('input', 'a text or an array of texts, as all of the channels take', 'something else')
  return nodes
}

/**
 * Encodes a request. `task`, the purpose of the vectors, is dropped and reported, because this protocol
 * cannot express it.
 */
function encodeTexts(
  { texts, dimensions, task }: TextsToEmbed,
  model: string,
  dropped: DroppedFields,
): Buffer {
  if (task !== undefined) dropped.add('taskType')
  return Buffer.from(JSON.stringify({ model, input: texts, dimensions, encoding_format: 'float' }))
}

import { type Fields, asList, asNumber } from './fields.ts'
import { Refusal } from './refusal.ts'
import { estimateTokens } from './tokens.ts'
import { keywords } from './topic.ts'
import { bearerToken, type Reply, type Upstream, bodyOfPost } from './upstream.ts'

const DIMENSIONS = 256
const MAX_DIMENSIONS = 4096
/** Number of dimensions that one word influences. */
const TRACES = 8

/**
 * Creates a simulated provider of embeddings: vectors of length 1, which are similar if the texts share
 * words.
 */
export function embeddingsUpstream(models: readonly string[]): Upstream {
  return { bodyIfServed: bodyOfPost('/embeddings'), models, keyOf: bearerToken, reply, refuse }
}

function reply(body: Fields, model: string): Reply {
  const input = typeof body.input === 'string' ? [body.input] : asList(body.input)
  const texts = input.every((one) => typeof one === 'number') ? [input.join(' ')] : input.map(textOf)
  if (texts.length === 0 || texts.includes('')) throw new Refusal('malformed', "'input' must not be empty")
  const dimensions = asNumber(body.dimensions) ?? DIMENSIONS
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > MAX_DIMENSIONS)
    throw new Refusal('malformed', `'dimensions' must be from 1 to ${MAX_DIMENSIONS}`)
  const data = texts.map((text, index) => {
    const vector = unitVector(text, dimensions)
    const embedding = body.encoding_format === 'base64' ? base64(vector) : vector
    return { object: 'embedding', index, embedding }
  })
  const tokens = texts.reduce((sum, text) => sum + estimateTokens(text.length), 0)
  const usage = { prompt_tokens: tokens, total_tokens: tokens }
  return { kind: 'whole', body: { object: 'list', data, model, usage }, tokens: 0 }
}

function textOf(input: unknown): string {
  return typeof input === 'string' ? input : asList(input).join(' ')
}

/**
 * Computes a vector of length 1: each word adds to a few dimensions, and the whole text adds a little to a
 * few others.
 */
function unitVector(text: string, dimensions: number): number[] {
  const vector = Array.from({ length: dimensions }, () => 0)
  const add = (word: string, weight: number): void => {
    for (let trace = 0; trace < TRACES; trace++) {
      const hash = hashOf(`${trace} ${word}`)
      const at = hash % dimensions
      vector[at] = (vector[at] ?? 0) + (hash & 0x10000 ? weight : -weight)
    }
  }
  for (const word of keywords(text)) add(word, 1)
  add(`whole ${text}`, 0.2)
  const length = Math.hypot(...vector)
  return vector.map((value) => Math.fround(length === 0 ? 1 / Math.sqrt(dimensions) : value / length))
}

/** Computes the 32-bit FNV-1a hash of a text. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0
  return hash
}

function base64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4)
  return bytes.toString('base64')
}

function refuse({ message }: Refusal): unknown {
  return { error: { message, type: 'invalid_request_error', param: null, code: null } }
}

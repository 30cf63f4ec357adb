import { asRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'
import { type VectorSpan, vectorSpans, withoutVectors, withVectors } from '../vector-spans.ts'
import type { VectorForm } from './request.ts'
import { readEmbeddingsUsage } from './usage.ts'
import { toBase64, toNumbers } from './vector.ts'

/** Upstream's response, and the bytes for the client. */
export interface EmbeddingsReply {
  readonly facts: ReplyFacts
  body(): Buffer
}

/**
 * Reads a response; never throws. Valid is a list `data` of objects with an `embedding`. Vectors in another
 * form than the client asked for are written in that form: its library would take numbers for base64, or the
 * reverse. All other bytes stay as they came. Vectors are found, not parsed: a response can be tens of
 * megabytes long.
 */
export function readEmbeddingsReply(bytes: Buffer, form: VectorForm): EmbeddingsReply {
  const spans = vectorSpans(bytes, 'embedding')
  const reply = withoutVectors(bytes, spans)
  const error = reply !== undefined && isError(reply['error'])
  if (!reply || error || !hasVectors(reply['data'])) {
    return { facts: { valid: false, error, usage: undefined, text: () => '' }, body: () => bytes }
  }
  const usage = readEmbeddingsUsage((key) => reply[key])
  const facts: ReplyFacts = { valid: true, error: false, usage, text: () => '' }
  return { facts, body: () => (form === undefined ? bytes : inForm(bytes, spans, form)) }
}

function hasVectors(data: unknown): boolean {
  return (
    Array.isArray(data) &&
    data.length > 0 &&
    data.every((one) => ['string', 'object'].includes(typeof asRecord(one)?.['embedding']))
  )
}

function inForm(bytes: Buffer, spans: readonly VectorSpan[], form: NonNullable<VectorForm>): Buffer {
  const other = spans.filter((span) => span.form !== form)
  if (other.length === 0) return bytes
  const texts = other.map(({ start, end }) => {
    const text = bytes.toString('latin1', start, end)
    return (form === 'base64' ? base64Of(text) : toNumbers(text.slice(1, -1))) ?? text
  })
  return withVectors(bytes, other, texts)
}

function base64Of(list: string): string | undefined {
  try {
    const numbers: unknown = JSON.parse(list)
    const isVector = Array.isArray(numbers) && numbers.every((one) => typeof one === 'number')
    return isVector ? `"${toBase64(numbers)}"` : undefined
  } catch {
    return undefined
  }
}

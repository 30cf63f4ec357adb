import { asRecord, parseRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'
import { readEmbeddingsUsage } from './usage.ts'

/**
 * Facts of a response, by its text with an empty list in the place of each vector; never throws. Valid is a
 * list `data` of objects with an `embedding`.
 */
export function embeddingsFacts(outline: string): ReplyFacts {
  const reply = parseRecord(outline) ?? {}
  const error = isError(reply['error'])
  const valid = !error && hasVectors(reply['data'])
  const usage = valid ? readEmbeddingsUsage((key) => reply[key]) : undefined
  return { valid, error, usage, text: () => '' }
}

function hasVectors(data: unknown): boolean {
  return (
    Array.isArray(data) &&
    data.length > 0 &&
    data.every((one) => ['string', 'object'].includes(typeof asRecord(one)?.['embedding']))
  )
}

import { NO_USAGE, type Usage } from '../usage.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'
import { count, type Counts, maxCount } from '../token-count.ts'

/**
 * Facts of a response, given its text with an empty list in place of each vector; never throws. A response is
 * valid if it has a list `data` of objects with an `embedding`.
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

const NONE: Counts = {}

/**
 * Reads the usage of an embeddings upstream; undefined if it reports no tokens. Output that some servers
 * report is ignored, because nothing is generated. Sources: `usage`, with the prompt or only a total
 * (Voyage); `meta.billed_units` (Cohere); `prompt_eval_count` (Ollama). `member` returns a member of the
 * response.
 */
function readEmbeddingsUsage(member: (key: string) => unknown): Usage | undefined {
  const usage = asRecord(member('usage')) ?? NONE
  const billed = asRecord(asRecord(member('meta'))?.['billed_units']) ?? NONE
  const input =
    maxCount(usage, 'prompt_tokens', 'input_tokens') ||
    count(usage, 'total_tokens') ||
    count(billed, 'input_tokens') ||
    count({ tokens: member('prompt_eval_count') }, 'tokens')
  return input > 0 ? { ...NO_USAGE, input } : undefined
}

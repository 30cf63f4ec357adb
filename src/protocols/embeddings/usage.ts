import { NO_USAGE, type Usage } from '../../domain/usage.ts'
import { asRecord } from '../json/record.ts'
import { type Counts, count, maxCount } from '../token-count.ts'

const NONE: Counts = {}

/**
 * Reads the usage of an embeddings upstream; undefined if it reports no tokens. Nothing is generated: what
 * some servers report as output beside the prompt is not counted. Sources: `usage`, with the prompt or only a
 * total (Voyage); `meta.billed_units` (Cohere); `prompt_eval_count` (Ollama). `member` returns a member of
 * the response.
 */
export function readEmbeddingsUsage(member: (key: string) => unknown): Usage | undefined {
  const usage = asRecord(member('usage')) ?? NONE
  const billed = asRecord(asRecord(member('meta'))?.['billed_units']) ?? NONE
  const input =
    maxCount(usage, 'prompt_tokens', 'input_tokens') ||
    count(usage, 'total_tokens') ||
    count(billed, 'input_tokens') ||
    count({ tokens: member('prompt_eval_count') }, 'tokens')
  return input > 0 ? { ...NO_USAGE, input } : undefined
}

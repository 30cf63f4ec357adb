import { asRecord, parseRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'
import { blockReason, partsOf } from './answer.ts'
import { generatedText } from './generated-text.ts'
import { usageOf } from './usage.ts'

/** Reads a whole answer's facts; never throws. A prompt that was refused is answered, too. */
export function usageOfAnswer(bytes: Buffer): ReplyFacts {
  const answer = parseRecord(bytes.toString()) ?? {}
  const error = isError(answer['error'])
  const candidates = Array.isArray(answer['candidates'])
    ? (answer['candidates'] as readonly unknown[]).map((one) => asRecord(one) ?? {})
    : []
  return {
    valid: !error && (candidates.length > 0 || blockReason(answer) !== undefined),
    usage: usageOf(answer),
    error,
    text: () => candidates.flatMap((candidate) => partsOf(candidate).flatMap(generatedText)).join('\n'),
  }
}

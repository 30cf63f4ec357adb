import { ArrivedMedia } from '../received-media.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import { isError, type ReplyFacts } from '../reply-facts.ts'
import { answerTexts, blockReason, partsOf } from './answer.ts'
import { noteArrived } from './note-received-media.ts'
import { generatedText } from './generated-text.ts'
import { StreamUsage } from './usage.ts'

/** Reads the facts of a whole answer; never throws. An answer that reports a refused prompt is valid too. */
export function usageOfAnswer(bytes: Buffer): ReplyFacts {
  const answers = answerTexts(bytes.toString()).map((text) => parseRecord(text) ?? {})
  const error = answers.some((answer) => isError(answer['error']))
  const candidates = answers.flatMap(({ candidates: all }) =>
    Array.isArray(all) ? (all as readonly unknown[]).map((one) => asRecord(one) ?? {}) : [],
  )
  const usage = new StreamUsage()
  for (const answer of answers) usage.read(answer)
  return {
    valid: !error && (candidates.length > 0 || answers.some((answer) => blockReason(answer) !== undefined)),
    usage: usage.usage,
    tools: usage.tools.uses,
    error,
    text: () => candidates.flatMap((candidate) => partsOf(candidate).flatMap(generatedText)).join('\n'),
    arrived() {
      const arrived = new ArrivedMedia()
      for (const candidate of candidates) noteArrived(partsOf(candidate), arrived)
      return arrived
    },
  }
}

import { GatewayError } from '../../errors.ts'
import { foldReply } from '../fold-reply.ts'
import type { Reply, ReplyEvent } from '../reply.ts'
import { isError } from '../reply-facts.ts'
import { parseRecord } from '../json/record.ts'
import { argumentsIn, blockReason, firstCandidate, partsOf } from './answer.ts'
import { modelOf } from './model-name.ts'
import { ReplyParts } from './reply-parts.ts'
import { finishReasonOf, stopOf } from './stop-reasons.ts'
import { usageOf } from './usage.ts'

/**
 * Reads a whole answer; the first of several candidates. A prompt that was refused has none. Throws
 * `upstream_error` where the bytes are no answer.
 */
export function decodeReply(bytes: Buffer): Reply {
  const text = bytes.toString()
  const answer = parseRecord(text)
  const first = answer && firstCandidate(answer)
  if (!answer || isError(answer['error']) || (!first && blockReason(answer) === undefined))
    throw new GatewayError('upstream_error', 'The upstream sent no answer that could be understood.')
  const id = typeof answer['responseId'] === 'string' ? answer['responseId'] : ''
  const model = typeof answer['modelVersion'] === 'string' ? modelOf(answer['modelVersion']) : ''
  const events: ReplyEvent[] = []
  const parts = new ReplyParts((event) => events.push(event))
  parts.setAnswerId(id)
  if (first) {
    const found = partsOf(first.candidate)
    parts.read(found, argumentsIn(text, first.at, found))
  }
  parts.end()
  const reason = first ? (finishReasonOf(first.candidate['finishReason']) ?? 'STOP') : 'SAFETY'
  return foldReply([
    { kind: 'start', id, model, usage: undefined },
    ...events,
    { kind: 'end', stop: stopOf(reason, parts), usage: usageOf(answer) },
  ]) as Reply
}

import { GatewayError } from '../../errors.ts'
import { ArrivedMedia } from '../arrived-media.ts'
import { foldReply } from '../fold-reply.ts'
import type { Reply, ReplyEvent } from '../reply.ts'
import { isError } from '../reply-facts.ts'
import { parseRecord } from '../json/record.ts'
import { answerTexts, argumentsIn, blockReason, firstCandidate, identityOf, partsOf } from './answer.ts'
import { noteArrived } from './arrived.ts'
import { citationsIn } from './grounding.ts'
import { ReplyParts } from './reply-parts.ts'
import { finishReasonOf, stopOf } from './stop-reasons.ts'
import { StreamUsage } from './usage.ts'

/**
 * Reads a whole answer; the first of several candidates. A prompt that was refused has none. Throws
 * `upstream_error` where the bytes are no answer.
 */
export function decodeReply(bytes: Buffer): Reply {
  const events: ReplyEvent[] = []
  const parts = new ReplyParts((event) => events.push(event))
  const usage = new StreamUsage()
  const arrived = new ArrivedMedia()
  let identity: ReturnType<typeof identityOf> | undefined
  let reason: string | undefined
  for (const text of answerTexts(bytes.toString())) {
    const answer = parseRecord(text)
    if (!answer || isError(answer['error'])) return refuse()
    const first = firstCandidate(answer)
    if (!identity) parts.setAnswerId((identity = identityOf(answer)).id)
    usage.read(answer)
    if (!first && blockReason(answer) !== undefined) reason ??= 'SAFETY'
    if (!first) continue
    const found = partsOf(first.candidate)
    noteArrived(found, arrived)
    parts.read(found, argumentsIn(text, first.at, found), citationsIn(first.candidate))
    reason = finishReasonOf(first.candidate['finishReason']) ?? reason ?? 'STOP'
  }
  if (!identity || reason === undefined) return refuse()
  parts.end()
  const reply = foldReply([
    { kind: 'start', ...identity, usage: undefined },
    ...events,
    { kind: 'end', stop: stopOf(reason, parts), usage: usage.usage },
  ]) as Reply
  return {
    ...reply,
    ...(usage.tools.uses.length > 0 && { tools: usage.tools.uses }),
    ...(!arrived.isEmpty && { arrived }),
  }
}

function refuse(): never {
  throw new GatewayError('upstream_error', 'The upstream sent no answer that could be understood.')
}

import { WireError } from '../../wire-error.ts'
import { ArrivedMedia } from '../../received-media.ts'
import { foldParts } from '../../fold-reply.ts'
import type { Choice, Reply, ReplyEvent } from '../../reply.ts'
import { isError } from '../../reply-facts.ts'
import { parseRecord } from '../../json/record.ts'
import type { Fields } from '../../field.ts'
import { answerTexts, argumentsIn, blockReason, candidateAt, identityOf, partsOf } from '../answer.ts'
import { noteArrived } from '../note-received-media.ts'
import { citationsIn } from '../grounding.ts'
import { logprobsOf } from '../logprobs.ts'
import { ReplyParts } from '../reply-parts.ts'
import { finishReasonOf, stopOf } from '../stop-reasons.ts'
import { StreamUsage } from '../usage.ts'

/** Answer and its text. */
interface Answer {
  readonly text: string
  readonly fields: Fields
}

/**
 * Reads a whole answer with as many candidates as were requested. A refused prompt has none. Throws
 * `upstream_error` if the bytes are not an answer.
 */
export function decodeReply(bytes: Buffer, choices = 1): Reply {
  const usage = new StreamUsage()
  const answers = answerTexts(bytes.toString()).map((text): Answer => {
    const fields = parseRecord(text)
    if (!fields || isError(fields['error'])) return refuse()
    usage.read(fields)
    return { text, fields }
  })
  const [begin] = answers
  const identity = begin && identityOf(begin.fields)
  const arrived = new ArrivedMedia()
  const first = identity && read(answers, 0, identity.id, arrived)
  if (!first) return refuse()
  const others = Array.from({ length: choices - 1 }, (_, i) =>
    read(answers, i + 1, `${identity.id}_${i + 1}`, arrived),
  )
  const found = others.filter((choice) => choice !== undefined)
  return {
    ...identity,
    ...first,
    usage: usage.usage,
    ...(found.length > 0 && { others: found }),
    ...(usage.tools.uses.length > 0 && { tools: usage.tools.uses }),
    ...(!arrived.isEmpty && { arrived }),
  }
}

/** Reads a candidate; undefined if it does not exist. */
function read(
  answers: readonly Answer[],
  number: number,
  id: string,
  arrived: ArrivedMedia,
): Choice | undefined {
  const events: ReplyEvent[] = []
  const parts = new ReplyParts((event) => events.push(event))
  parts.setAnswerId(id)
  let reason: string | undefined
  for (const { text, fields } of answers) {
    const found = candidateAt(fields, number)
    if (!found && number === 0 && blockReason(fields) !== undefined) reason ??= 'SAFETY'
    if (!found) continue
    const { candidate, at } = found
    const said = partsOf(candidate)
    noteArrived(said, arrived)
    parts.read(said, argumentsIn(text, at, said), citationsIn(candidate), logprobsOf(candidate))
    reason = finishReasonOf(candidate['finishReason']) ?? reason ?? 'STOP'
  }
  if (reason === undefined) return undefined
  parts.end()
  return { parts: foldParts(events), stop: stopOf(reason, parts) }
}

function refuse(): never {
  throw new WireError('upstream_error', 'The upstream sent no answer that could be understood.')
}

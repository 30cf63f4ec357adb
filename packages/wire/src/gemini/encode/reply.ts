import type { ReplyIdentity } from '../../codec.ts'
import { logprobsIn } from '../../logprobs.ts'
import type { Choice, Reply } from '../../reply.ts'
import { writeLogprobs } from '../logprobs.ts'
import { FINISH_REASONS } from '../stop-reasons.ts'
import { usageOut } from '../usage-out.ts'
import { WrittenGrounding } from '../grounding-writer.ts'
import { EMPTY_PART, PartWriter } from '../part-writer.ts'

/** Encodes a whole answer. An empty reply becomes an empty text. */
export function encodeReply(reply: Reply, identity: ReplyIdentity): Buffer {
  const { id, model, usage } = reply
  const rest = JSON.stringify({
    ...(usage && { usageMetadata: usageOut(usage) }),
    modelVersion: model,
    responseId: id || identity.id,
  })
  const candidates = [reply, ...(reply.others ?? [])].map(writeCandidate)
  return Buffer.from(`{"candidates":[${candidates.join(',')}],${rest.slice(1)}`)
}

function writeCandidate({ parts, stop }: Choice, index: number): string {
  const writer = new PartWriter()
  const written = parts.map((part) => writer.write(part)).filter((part) => part !== undefined)
  const grounding = new WrittenGrounding()
  for (const [number, part] of parts.entries()) grounding.add(part, number)
  const content = `{"role":"model","parts":[${written.length > 0 ? written.join(',') : EMPTY_PART}]}`
  const facts = grounding.write() + writeLogprobs(logprobsIn(parts))
  return `{"content":${content},"finishReason":"${FINISH_REASONS[stop.reason]}",${facts}"index":${index}}`
}

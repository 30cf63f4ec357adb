import type { ReplyIdentity } from '../codec.ts'
import type { Reply } from '../reply.ts'
import { FINISH_REASONS } from './stop-reasons.ts'
import { usageOut } from './usage-out.ts'
import { WrittenGrounding } from './written-grounding.ts'
import { EMPTY_PART, PartWriter } from './written-part.ts'

/** Encodes a whole answer; one that says nothing has an empty text. */
export function encodeReply({ id, model, parts, stop, usage }: Reply, identity: ReplyIdentity): Buffer {
  const writer = new PartWriter()
  const written = parts.map((part) => writer.write(part)).filter((part) => part !== undefined)
  const grounding = new WrittenGrounding()
  for (const [index, part] of parts.entries()) grounding.add(part, index)
  const content = `{"role":"model","parts":[${written.length > 0 ? written.join(',') : EMPTY_PART}]}`
  const rest = JSON.stringify({
    ...(usage && { usageMetadata: usageOut(usage) }),
    modelVersion: model,
    responseId: id || identity.id,
  })
  const candidate = `{"content":${content},"finishReason":"${FINISH_REASONS[stop.reason]}",${grounding.write()}"index":0}`
  return Buffer.from(`{"candidates":[${candidate}],${rest.slice(1)}`)
}

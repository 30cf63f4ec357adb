import type { ReplyIdentity } from '../../codec.ts'
import type { Reply } from '../../reply.ts'
import { encodeBlocks, messageId } from '../encode-block.ts'
import { writeStop } from '../stop-reasons.ts'
import { writeUsage } from '../write-usage.ts'

/** Encodes a whole reply; `docs/api.md: Messages response`. */
export function encodeReply(reply: Reply, identity: ReplyIdentity): Buffer {
  const { parts, stop, usage } = reply
  const content = parts.flatMap((part, index) => encodeBlocks(part, `${identity.id}${index}`))
  const said = {
    calledTools: parts.some(({ kind }) => kind === 'tool-call'),
    refused: parts.some((part) => part.kind === 'text' && part.refusal),
  }
  const head = JSON.stringify({
    id: messageId(reply.id, identity),
    type: 'message',
    role: 'assistant',
    model: reply.model,
  })
  const tail = JSON.stringify({ ...writeStop(stop, said), usage: writeUsage(usage) })
  return Buffer.from(`${head.slice(0, -1)},"content":[${content.join(',')}],${tail.slice(1)}`)
}

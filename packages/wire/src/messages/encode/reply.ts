import type { ReplyIdentity } from '../../codec.ts'
import type { Reply, ReplyPart } from '../../reply.ts'
import { writeStop } from '../stop-reasons.ts'
import { writeUsage } from '../usage.ts'
import { sealSignature, UNSIGNED_THOUGHT_ENVELOPE } from '../../signature-envelope.ts'
import type { SearchPart } from '../../conversation.ts'
import { inputObject } from '../../tool-input.ts'
import { DIRECT_CALLER, searchBlocks, writeCitation } from '../blocks.ts'

/** Encodes a complete reply; `docs/api.md: Messages response`. */
export function encodeReply(reply: Reply, identity: ReplyIdentity): Buffer {
  const { parts, stop, usage } = reply
  const content = parts.flatMap((part, index) => encodeBlocks(part, `${identity.id}${index}`))
  const traits = {
    calledTools: parts.some(({ kind }) => kind === 'tool-call'),
    refused: parts.some((part) => part.kind === 'text' && part.refusal),
  }
  const head = JSON.stringify({
    id: messageId(reply.id, identity),
    type: 'message',
    role: 'assistant',
    model: reply.model,
  })
  const tail = JSON.stringify({ ...writeStop(stop, traits), usage: writeUsage(usage) })
  return Buffer.from(`${head.slice(0, -1)},"content":[${content.join(',')}],${tail.slice(1)}`)
}

/**
 * Encodes a part of a reply as the JSON texts of its blocks. Returns an empty list for an empty text, and for
 * a part that this protocol cannot express. The input of a tool call is the text that the model wrote, or an
 * empty object if that is not a JSON object. `key` makes the ids of a search unique.
 */
export function encodeBlocks(part: ReplyPart, key: string): readonly string[] {
  if (part.kind === 'search') return encodeForeignSearch(part, key).map((block) => JSON.stringify(block))
  const block = encodeBlock(part)
  return block === undefined ? [] : [block]
}

/**
 * Returns the blocks of a search that a provider with another protocol ran. Returns an empty list for a
 * search by a messages provider, because the opaque parts of the reply contain its blocks.
 */
export function encodeForeignSearch(search: SearchPart, key: string): readonly object[] {
  return search.protocol === 'messages' ? [] : searchBlocks(search, key)
}

function encodeBlock(part: Exclude<ReplyPart, SearchPart>): string | undefined {
  switch (part.kind) {
    case 'text':
      return part.text === ''
        ? undefined
        : JSON.stringify({
            type: 'text',
            text: part.text,
            citations: part.citations?.map(writeCitation) ?? null,
          })
    case 'thinking':
      return JSON.stringify({
        type: 'thinking',
        thinking: part.text,
        signature: part.proof ? sealSignature(part.proof, 'messages') : UNSIGNED_THOUGHT_ENVELOPE,
      })
    case 'tool-call': {
      const head = JSON.stringify({ type: 'tool_use', id: part.id, name: part.name }).slice(0, -1)
      return `${head},"input":${inputObject(part.input) ?? '{}'},"caller":${JSON.stringify(DIRECT_CALLER)}}`
    }
    case 'opaque':
      return part.protocol === 'messages' ? JSON.stringify(part.value) : undefined
  }
}

/**
 * Returns the upstream's id if it has the format of this protocol; otherwise the id created by the gateway.
 */
export function messageId(id: string, identity: ReplyIdentity): string {
  if (id.startsWith('msg_')) return id
  return identity.id.startsWith('msg_') ? identity.id : `msg_${identity.id}`
}

import type { ReplyIdentity } from '../../codec.ts'
import type { Asked } from '../../conversation.ts'
import { isCut } from '../../cut-calls.ts'
import type { Reply, ReplyPart } from '../../reply.ts'
import { itemId, itemType, ToolForms, writeItem } from '../output-item.ts'
import { ResponseObject } from '../response-object.ts'
import { incompleteReason } from '../stop-reasons.ts'

/**
 * Encodes a whole response. Each part becomes an item. If the response is incomplete, so is its last item; a
 * call whose arguments were cut off is always incomplete.
 */
export function encodeReply(reply: Reply, identity: ReplyIdentity, asked?: Asked): Buffer {
  const response = new ResponseObject(identity, asked)
  response.model = reply.model
  const reason = incompleteReason(reply.stop)
  const parts = reply.parts.filter(saysSomething)
  const forms = new ToolForms(asked?.tools)
  const output = parts.map((part, index) => {
    const form = part.kind === 'tool-call' ? forms.of(part.name) : undefined
    const type = itemType(part, form, part.kind === 'tool-call' ? part.input : undefined)
    const isLast = index === parts.length - 1
    const isIncomplete = (isLast && reason !== undefined) || (part.kind === 'tool-call' && isCut(part.input))
    const status = isIncomplete ? 'incomplete' : 'completed'
    return writeItem(part, { id: itemId(type, response.itemKey, index), type, status, form })
  })
  const status = reason === undefined ? 'completed' : 'incomplete'
  return Buffer.from(response.write({ status, incompleteReason: reason, output, usage: reply.usage }))
}

/** Reports whether the part becomes an item. Empty texts and opaque parts of other dialects do not. */
function saysSomething(part: ReplyPart): boolean {
  switch (part.kind) {
    case 'text':
      return part.text !== ''
    case 'thinking':
      return part.text !== '' || part.proof !== undefined
    case 'opaque':
      return part.protocol !== 'responses'
    case 'tool-call':
    case 'search':
      return true
  }
}

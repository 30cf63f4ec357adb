import {
  type EncodableConversation,
  type EncodablePart,
  withAlternatingTurns,
} from '../../alternating-turns.ts'
import type { DroppedFields } from '../../codec.ts'
import type { Conversation, Part, Turn } from '../../conversation.ts'
import type { Capabilities } from '../../model-capabilities.ts'
import { reportDropped } from './dropped-fields.ts'

/** Replaces the turns by those that are sent in a Converse request, to a model that may mix calls and texts. */
export function withEncodableTurns(
  conversation: Conversation,
  capabilities: Capabilities,
  dropped: DroppedFields,
): EncodableConversation {
  const partsOf = ({ role, parts }: Turn): EncodablePart[] =>
    parts.filter((part): part is EncodablePart => isEncodable(part, role, dropped))
  return withAlternatingTurns(conversation, partsOf, capabilities, dropped)
}

function isEncodable(part: Part, role: Turn['role'], dropped: DroppedFields): boolean {
  switch (part.kind) {
    case 'text':
      // Upstreams refuse a blank text.
      return part.text.trim() !== ''
    case 'thinking': {
      // Upstreams accept only thoughts with their own signature.
      const isOwn = part.proof?.protocol === 'converse'
      if (!isOwn) reportDropped(dropped, 'reasoning_content')
      return isOwn
    }
    case 'media':
      // Media may only be in turns of the user.
      if (role === 'assistant') reportDropped(dropped, 'content')
      return role === 'user'
    case 'search':
      reportDropped(dropped, 'content')
      return false
    case 'opaque': {
      const isOwn = part.protocol === 'converse'
      if (!isOwn) reportDropped(dropped, 'content')
      return isOwn
    }
    case 'tool-call':
    case 'tool-result':
      return true
  }
}

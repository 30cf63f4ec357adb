import {
  type EncodableConversation,
  type EncodablePart,
  withAlternatingTurns,
} from '../../alternating-turns.ts'
import type { DroppedFields } from '../../codec.ts'
import type {
  Conversation,
  MediaPart,
  OpaquePart,
  Part,
  TextPart,
  ToolResultPart,
  Turn,
} from '../../conversation.ts'
import type { Capabilities } from '../../model-capabilities.ts'
import { reportDropped } from '../dropped-fields.ts'
import { isSearchResult } from '../blocks.ts'

/** Used for an empty user turn: upstreams require the turn, and refuse one without text. */
const PLACEHOLDER: TextPart = { kind: 'text', text: '...' }

/** Replaces the turns by those that are sent in a messages request. */
export function withEncodableTurns(
  conversation: Conversation,
  capabilities: Capabilities,
  dropped: DroppedFields,
): EncodableConversation {
  const partsOf = ({ role, parts }: Turn): EncodablePart[] =>
    parts
      .filter((part, i): part is EncodablePart => isEncodable(part, { role, before: parts[i - 1] }, dropped))
      .map((part) => withoutUnencodable(part, dropped))
  const alternating = withAlternatingTurns(conversation, partsOf, capabilities, dropped)
  const turns = alternating.turns.map((turn) =>
    turn.parts.length === 0 ? { ...turn, parts: [PLACEHOLDER] } : turn,
  )
  return { ...alternating, turns }
}

/** Whether a text is empty or only white space, which upstreams refuse. */
export function isBlankText({ text }: TextPart): boolean {
  return text.trim() === ''
}

/** The position of a part: the role of its turn, and the part before it. */
interface PartPosition {
  readonly role: Turn['role']
  /** The previous part of the same turn; undefined for the first part. */
  readonly before: Part | undefined
}

function isEncodable(part: Part, { role, before }: PartPosition, dropped: DroppedFields): boolean {
  switch (part.kind) {
    case 'text':
      return !isBlankText(part)
    case 'thinking': {
      // Upstreams accept only thoughts with their own signature.
      const isOwn = part.proof?.protocol === 'messages'
      if (!isOwn) reportDropped(dropped, 'reasoning_content')
      return isOwn
    }
    case 'media':
      if (role === 'assistant') reportDropped(dropped, 'content')
      nameDetail(part, dropped)
      return role === 'user'
    case 'search':
      // Upstreams accept only results of their own searches, in their own blocks. These blocks are opaque
      // parts.
      if (before?.kind !== 'opaque' || !isSearchResult(before.value)) reportDropped(dropped, 'content')
      return false
    case 'opaque':
      return isOwn(part, dropped)
    case 'tool-call':
    case 'tool-result':
      return true
  }
}

/** Drops those parts of a tool result that this protocol cannot express. */
function withoutUnencodable(part: EncodablePart, dropped: DroppedFields): EncodablePart {
  if (part.kind !== 'tool-result') return part
  const parts = part.parts.filter((inner) => {
    if (inner.kind === 'text') return !isBlankText(inner)
    if (inner.kind === 'media') nameDetail(inner, dropped)
    return inner.kind === 'media' || isOwn(inner, dropped)
  })
  return { ...part, parts } satisfies ToolResultPart
}

/**
 * Adds `image_url.detail`, the resolution at which an image should be read, to the dropped fields, because
 * this protocol cannot express it.
 */
function nameDetail({ detail }: MediaPart, dropped: DroppedFields): void {
  if (detail !== undefined) reportDropped(dropped, 'image_url.detail')
}

function isOwn(part: OpaquePart, dropped: DroppedFields): boolean {
  const own = part.protocol === 'messages'
  if (!own) reportDropped(dropped, 'content')
  return own
}

import type { DroppedFields } from '../../codec.ts'
import type {
  MediaPart,
  OpaquePart,
  Part,
  SearchPart,
  TextPart,
  ToolResultPart,
  Turn,
} from '../../conversation.ts'
import { reportDropped } from '../dropped-fields.ts'
import { isSearchResult } from '../blocks.ts'

/** A part that this protocol can express. */
type EncodablePart = Exclude<Part, SearchPart>

/** A turn that this protocol can express. */
export interface EncodableTurn extends Turn {
  readonly parts: readonly EncodablePart[]
}

/** Used for an empty user turn: upstreams require the turn, and refuse one without text. */
const PLACEHOLDER: TextPart = { kind: 'text', text: '...' }

/**
 * Prepares turns for a messages request: drops parts that this protocol cannot express, merges consecutive
 * turns of the same role, adds a user turn at the beginning if needed, and moves tool results to the start of
 * their turn. An empty assistant turn is dropped. An empty user turn is kept, because otherwise the
 * conversation would end with an assistant's turn.
 */
export function encodableTurns(turns: readonly Turn[], dropped: DroppedFields): EncodableTurn[] {
  const merged: { role: Turn['role']; parts: EncodablePart[] }[] = []
  for (const { role, parts } of turns) {
    const encodable = parts
      .filter((part, i): part is EncodablePart => isEncodable(part, { role, before: parts[i - 1] }, dropped))
      .map((part) => withoutUnencodable(part, dropped))
    const last = merged.at(-1)
    if (last?.role === role) last.parts.push(...encodable)
    else if (role === 'user' || encodable.length > 0) merged.push({ role, parts: encodable })
  }
  if (merged[0]?.role !== 'user') merged.unshift({ role: 'user', parts: [] })
  return merged.map(({ role, parts }, i) => {
    if (role === 'assistant') return { role, parts: i === merged.length - 1 ? trimmedPrefill(parts) : parts }
    const results = parts.filter(({ kind }) => kind === 'tool-result')
    const others = parts.filter(({ kind }) => kind !== 'tool-result')
    return { role, parts: parts.length === 0 ? [PLACEHOLDER] : [...results, ...others] }
  })
}

/**
 * Removes white space at the end of a prefill (the beginning of a reply that the model must continue),
 * because upstreams refuse it.
 */
function trimmedPrefill(parts: readonly EncodablePart[]): readonly EncodablePart[] {
  const last = parts.at(-1)
  return last?.kind === 'text' ? [...parts.slice(0, -1), { ...last, text: last.text.trimEnd() }] : parts
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

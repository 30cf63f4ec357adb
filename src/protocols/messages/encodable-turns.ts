import type { Dropped } from '../codec.ts'
import type { MediaPart, OpaquePart, Part, TextPart, ToolResultPart, Turn } from '../conversation.ts'
import type { SearchPart } from '../provider-search.ts'
import { drop } from './dropped.ts'
import { isSearchResult } from './server-searches.ts'

/** Part that messages can express. */
type EncodablePart = Exclude<Part, SearchPart>

/** Turn that messages can express. */
export interface EncodableTurn extends Turn {
  readonly parts: readonly EncodablePart[]
}

/** Placeholder for an empty user turn: upstreams require the turn, and refuse one without text. */
const PLACEHOLDER: TextPart = { kind: 'text', text: '...' }

/**
 * Prepares turns for messages: drops parts that it cannot express, merges turns of one side, begins with the
 * user, and puts tool results first in a turn. An empty assistant turn is dropped; an empty user turn stays,
 * because otherwise the last turn would be another one.
 */
export function encodableTurns(turns: readonly Turn[], dropped: Dropped): EncodableTurn[] {
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

/** Trims a prefill, which the model continues: upstreams refuse trailing white space. */
function trimmedPrefill(parts: readonly EncodablePart[]): readonly EncodablePart[] {
  const last = parts.at(-1)
  return last?.kind === 'text' ? [...parts.slice(0, -1), { ...last, text: last.text.trimEnd() }] : parts
}

/** Whether a text is empty or blank, which upstreams refuse. */
export function isBlank({ text }: TextPart): boolean {
  return text.trim() === ''
}

/** Where a part stands. */
interface Standing {
  readonly role: Turn['role']
  /** Part in front of it. */
  readonly before: Part | undefined
}

function isEncodable(part: Part, { role, before }: Standing, dropped: Dropped): boolean {
  switch (part.kind) {
    case 'text':
      return !isBlank(part)
    case 'thinking': {
      // Upstreams accept only their own signatures.
      const isOwn = part.proof?.protocol === 'messages'
      if (!isOwn) drop(dropped, 'reasoning_content')
      return isOwn
    }
    case 'media':
      if (role === 'assistant') drop(dropped, 'content')
      nameDetail(part, dropped)
      return role === 'user'
    case 'search':
      // Upstreams read only what they found themselves, and then want their own blocks.
      if (before?.kind !== 'opaque' || !isSearchResult(before.value)) drop(dropped, 'content')
      return false
    case 'opaque':
      return isOwn(part, dropped)
    case 'tool-call':
    case 'tool-result':
      return true
  }
}

/** Drops the parts of a tool result that messages cannot express. */
function withoutUnencodable(part: EncodablePart, dropped: Dropped): EncodablePart {
  if (part.kind !== 'tool-result') return part
  const parts = part.parts.filter((inner) => {
    if (inner.kind === 'text') return !isBlank(inner)
    if (inner.kind === 'media') nameDetail(inner, dropped)
    return inner.kind === 'media' || isOwn(inner, dropped)
  })
  return { ...part, parts } satisfies ToolResultPart
}

/** How closely a picture is to be looked at cannot be said. */
function nameDetail({ detail }: MediaPart, dropped: Dropped): void {
  if (detail !== undefined) drop(dropped, 'image_url.detail')
}

function isOwn(part: OpaquePart, dropped: Dropped): boolean {
  const own = part.protocol === 'messages'
  if (!own) drop(dropped, 'content')
  return own
}

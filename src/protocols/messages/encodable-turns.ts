import type { Dropped } from '../codec.ts'
import type { OpaquePart, Part, TextPart, ToolResultPart, Turn } from '../conversation.ts'
import { drop } from './dropped.ts'

/**
 * A turn of a user's that says nothing: upstreams want one where there is none, and refuse one without text.
 */
const SILENCE: TextPart = { kind: 'text', text: '...' }

/**
 * The turns as this wire takes them: parts that it cannot say left out, one turn for each change of speakers,
 * the user first, and a user's results of tools before what is said beside them. An assistant's turn without
 * parts is none; a user's stays, since without it another would seem to have spoken last.
 */
export function spokenTurns(turns: readonly Turn[], dropped: Dropped): Turn[] {
  const merged: { role: Turn['role']; parts: Part[] }[] = []
  for (const { role, parts } of turns) {
    const said = parts.filter((part) => canSay(part, role, dropped)).map((part) => sayable(part, dropped))
    const last = merged.at(-1)
    if (last?.role === role) last.parts.push(...said)
    else if (role === 'user' || said.length > 0) merged.push({ role, parts: said })
  }
  if (merged[0]?.role !== 'user') merged.unshift({ role: 'user', parts: [] })
  return merged.map(({ role, parts }, i) => {
    if (role === 'assistant') return { role, parts: i === merged.length - 1 ? begun(parts) : parts }
    const results = parts.filter(({ kind }) => kind === 'tool-result')
    const others = parts.filter(({ kind }) => kind !== 'tool-result')
    return { role, parts: parts.length === 0 ? [SILENCE] : [...results, ...others] }
  })
}

/**
 * The beginning of an answer, which the model goes on with: upstreams refuse one that ends in white space.
 */
function begun(parts: readonly Part[]): readonly Part[] {
  const last = parts.at(-1)
  return last?.kind === 'text' ? [...parts.slice(0, -1), { ...last, text: last.text.trimEnd() }] : parts
}

/** Text that upstreams refuse: none, or nothing but white space. */
export function isBlank({ text }: TextPart): boolean {
  return text.trim() === ''
}

function canSay(part: Part, role: Turn['role'], dropped: Dropped): boolean {
  switch (part.kind) {
    case 'text':
      return !isBlank(part)
    case 'thinking': {
      // Upstreams believe only what they signed themselves.
      const isOwn = part.proof?.protocol === 'messages'
      if (!isOwn) drop(dropped, 'reasoning_content')
      return isOwn
    }
    case 'media':
      if (role === 'assistant') drop(dropped, 'content')
      return role === 'user'
    case 'opaque':
      return isOwn(part, dropped)
    case 'tool-call':
    case 'tool-result':
      return true
  }
}

/** A result without what cannot be said in it. */
function sayable(part: Part, dropped: Dropped): Part {
  if (part.kind !== 'tool-result') return part
  const parts = part.parts.filter((inner) => {
    if (inner.kind === 'text') return !isBlank(inner)
    return inner.kind === 'media' || isOwn(inner, dropped)
  })
  return { ...part, parts } satisfies ToolResultPart
}

function isOwn(part: OpaquePart, dropped: Dropped): boolean {
  const own = part.protocol === 'messages'
  if (!own) drop(dropped, 'content')
  return own
}

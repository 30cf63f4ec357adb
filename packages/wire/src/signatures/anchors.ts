import { createHash } from 'node:crypto'
import type { Conversation, MediaPart, Part, Turn } from '../conversation.ts'

/** Number of characters at both ends of a file's data that identify it. */
const MEDIA_SAMPLE = 64

/** Anchor of a tool call. Providers never use an id twice. */
export function callAnchor(id: string): string {
  return `call ${id}`
}

/**
 * Anchor of a reply without calls: its text and everything before it, because the same text in another
 * conversation is another reply. Undefined for a reply without text.
 */
export function textAnchor(context: string, text: string): string | undefined {
  const said = text.trim()
  if (said === '') return undefined
  return `text ${createHash('sha256').update(context).update('\n').update(said).digest('base64url')}`
}

/**
 * Digests of the conversation before each turn, and of all turns. Thoughts and cache marks are not included.
 */
export function contextsOf({ system, turns }: Pick<Conversation, 'system' | 'turns'>): readonly string[] {
  const hash = createHash('sha256').update(JSON.stringify(system.map(({ text }) => text)))
  const contexts = [hash.copy().digest('base64url')]
  for (const turn of turns) {
    hash.update(JSON.stringify(essenceOf(turn)))
    contexts.push(hash.copy().digest('base64url'))
  }
  return contexts
}

/** All texts joined without a separator. */
export function textOf({ parts }: { readonly parts: readonly Part[] }): string {
  return parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')
}

function essenceOf(turn: Turn): unknown {
  return [turn.role, textOf(turn).trim(), turn.parts.flatMap(essenceOfPart)]
}

/** Texts are digested separately, per turn, because clients split and join them. */
function essenceOfPart(part: Part): unknown[] {
  switch (part.kind) {
    case 'tool-call':
      return [part.id]
    case 'tool-result':
      return [part.callId, textOf(part), part.parts.flatMap(essenceOfPart)]
    case 'media':
      return [sampleOf(part)]
    case 'text':
    case 'thinking':
    case 'search':
    case 'opaque':
      return []
  }
}

function sampleOf({ source }: MediaPart): unknown {
  const data = source.kind === 'inline' ? source.data : source.url
  return [data.length, data.slice(0, MEDIA_SAMPLE), data.slice(-MEDIA_SAMPLE)]
}

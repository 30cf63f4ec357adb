import type { Dropped } from './codec.ts'
import type { Conversation, Part } from './conversation.ts'

/** Removes the cache marks for upstreams that refuse them. Returns the same object if there are none. */
export function withoutCacheMarks(conversation: Conversation, dropped: Dropped): Conversation {
  const { system, turns, tools } = conversation
  if (![...system, ...tools].some(isMarked) && !turns.some(({ parts }) => parts.some(hasMarks)))
    return conversation
  dropped.add('cache_control')
  return {
    ...conversation,
    system: system.map(unmarked),
    tools: tools.map(unmarked),
    turns: turns.map((turn) => ({ ...turn, parts: turn.parts.map(unmarkedPart) })),
  }
}

function isMarked(holder: object): boolean {
  return 'cache' in holder && holder.cache !== undefined
}

function hasMarks(part: Part): boolean {
  return isMarked(part) || (part.kind === 'tool-result' && part.parts.some(isMarked))
}

function unmarkedPart(part: Part): Part {
  return part.kind === 'tool-result' ? { ...unmarked(part), parts: part.parts.map(unmarked) } : unmarked(part)
}

function unmarked<T extends object>(holder: T): T {
  return isMarked(holder) ? { ...holder, cache: undefined } : holder
}

import type { DroppedFields } from './codec.ts'
import {
  type CacheMark,
  CACHE_LIFETIMES,
  type CacheLifetime,
  type Conversation,
  type Part,
  type SystemText,
  type Tool,
  type ToolResultPart,
  type Turn,
} from './conversation.ts'
import { refuseField } from './field-check.ts'
import { asRecord } from './json/record.ts'
import type { ConverseCapabilities } from './model-capabilities.ts'

/** Field of a block that marks the end of a cached prefix in chat or responses requests to OpenAI. */
export const CACHE_BREAKPOINT_FIELD = 'prompt_cache_breakpoint'

/** The cache marks that an upstream accepts. A cache mark sets the end of a prefix of the prompt to cache. */
export interface CacheMarkRules {
  /** The request field that expresses a cache mark, in protocols that have two such fields. */
  readonly field?: CacheMark['field']
  /** Accepted lifetimes of a cached prefix, shortest first. */
  readonly lifetimes: readonly CacheLifetime[]
  /** Maximum number of cache marks in a request. If there are more, the last ones are kept. */
  readonly maxMarks: number
  /** The kinds of objects that may have a cache mark. */
  readonly places: readonly CacheMarkPlace[]
  /**
   * Whether a cache mark at the end of a tool's result belongs to the result itself instead of its last part.
   */
  readonly marksWholeResults?: true
  /** Whether a text that has a cache mark must be in a list. */
  readonly needsLists?: true
}

/** Kind of an object that has a cache mark; `answer` is a part of an assistant's turn. */
export type CacheMarkPlace = 'tool' | 'content' | 'answer' | 'call' | 'result'

/** Rules of `cache_control` in messages requests. */
export const MESSAGES_CACHE_MARKS: CacheMarkRules = {
  lifetimes: ['5m', '1h'],
  maxMarks: 4,
  places: ['tool', 'content', 'answer', 'call', 'result'],
  // Anthropic's documentation allows cache marks on tool results, but not on the parts within a result.
  marksWholeResults: true,
}

/** Rules of `cachePoint` in requests of Converse; undefined if the model accepts none. */
export function converseCacheMarks({
  cache,
  cachesForAnHour,
}: ConverseCapabilities): CacheMarkRules | undefined {
  if (cache === 'nowhere') return undefined
  return {
    lifetimes: cachesForAnHour ? ['5m', '1h'] : ['5m'],
    maxMarks: 4,
    places: cache === 'everywhere' ? MESSAGES_CACHE_MARKS.places : ['content', 'answer'],
  }
}

/** Rules of `cache_control` in chat requests. */
export const CHAT_CACHE_MARKS: CacheMarkRules = {
  lifetimes: MESSAGES_CACHE_MARKS.lifetimes,
  maxMarks: Infinity,
  places: ['tool', 'content', 'answer', 'result'],
  needsLists: true,
}

/**
 * Rules of `prompt_cache_breakpoint` in chat requests. The number is not limited, because OpenAI itself
 * caches only at the last four.
 */
export const CHAT_BREAKPOINTS: CacheMarkRules = {
  field: CACHE_BREAKPOINT_FIELD,
  lifetimes: ['30m', '12h'],
  maxMarks: Infinity,
  places: ['content', 'answer', 'result'],
  needsLists: true,
}

/** Rules of `prompt_cache_breakpoint` in responses requests. */
export const RESPONSES_BREAKPOINTS: CacheMarkRules = { ...CHAT_BREAKPOINTS, places: ['content', 'result'] }

/** Reads a `cache_control`. */
export function readCacheControl(value: unknown, path: string): CacheMark {
  const mark = asRecord(value)
  const ttl = mark?.['ttl'] ?? undefined
  if (mark?.['type'] !== 'ephemeral')
    return { ttl: undefined, invalid: { path: `${path}.type`, expected: `'ephemeral'` } }
  if (ttl !== undefined && ttl !== '5m' && ttl !== '1h')
    return { ttl: undefined, invalid: { path: `${path}.ttl`, expected: `'5m' or '1h'` } }
  return { ttl }
}

/**
 * Reads the cache breakpoint of a part, as an object to spread. A breakpoint without a lifetime has the
 * lifetime of the request.
 */
export function readBreakpoint(part: Readonly<Record<string, unknown>>): { cache?: CacheMark } {
  const given = part[CACHE_BREAKPOINT_FIELD]
  if (given === undefined || given === null) return {}
  const ttl = asRecord(given)?.['ttl']
  return { cache: { ttl: isLifetime(ttl) ? ttl : undefined, field: CACHE_BREAKPOINT_FIELD } }
}

/** Renders a cache breakpoint as an object to spread into a part. */
export function writeBreakpoint(cache: CacheMark | undefined): Readonly<Record<string, unknown>> {
  return cache ? { [CACHE_BREAKPOINT_FIELD]: { mode: 'explicit', ...(cache.ttl && { ttl: cache.ttl }) } } : {}
}

function isLifetime(value: unknown): value is CacheLifetime {
  return (CACHE_LIFETIMES as readonly unknown[]).includes(value)
}

/** Sets the lifetime in the request's `prompt_cache_options` on cache breakpoints that have none. */
export function withCacheLifetimeOfRequest(conversation: Conversation, options: unknown): Conversation {
  const ttl = asRecord(options)?.['ttl']
  if (!isLifetime(ttl)) return conversation
  return mapMarks(conversation, (mark) =>
    mark.field === CACHE_BREAKPOINT_FIELD && mark.ttl === undefined ? { ...mark, ttl } : mark,
  )
}

/**
 * Adapts the cache marks to what an upstream accepts; without rules all marks are removed. A lifetime becomes
 * the next longer one that the upstream has, or its longest. An earlier mark gets at least the lifetime of a
 * later one, as providers require. Removed marks and shortened lifetimes are reported in `dropped`. Throws
 * `invalid_request` for a mark that is kept and has an unknown value.
 */
export function withAcceptedCacheMarks(
  given: Conversation,
  rules: CacheMarkRules | undefined,
  dropped: DroppedFields,
): Conversation {
  const listed = rules?.needsLists ? { ...given, listsContent: true as const } : given
  const conversation = rules?.marksWholeResults ? withWholeResultMarks(listed) : listed
  const marks: CacheMark[] = []
  mapMarks(conversation, (mark, place) => {
    if (rules?.places.includes(place)) marks.push(mark)
    return mark
  })
  const firstKept = marks.length - (rules?.maxMarks ?? 0)
  const lifetimes = marks.map((mark) => lifetimeOf(mark, rules?.lifetimes ?? CACHE_LIFETIMES))
  for (let at = lifetimes.length - 2; at >= 0; at--)
    lifetimes[at] = Math.max(lifetimes[at]!, lifetimes[at + 1]!)
  let at = 0
  return mapMarks(conversation, (mark, place) => {
    const name = mark.field ?? 'cache_control'
    if (!rules?.places.includes(place) || at++ < firstKept) {
      dropped.add(name)
      return undefined
    }
    if (mark.invalid) refuseField(mark.invalid.path, mark.invalid.expected, 'something else')
    const ttl = CACHE_LIFETIMES[lifetimes[at - 1]!]
    if (CACHE_LIFETIMES.indexOf(ttl!) < CACHE_LIFETIMES.indexOf(statedLifetime(mark)))
      dropped.add(`${name}.ttl`)
    return { ttl: isDefault(mark, ttl, rules) ? undefined : ttl, ...(rules.field && { field: rules.field }) }
  })
}

/** Moves a cache mark on the last part of a tool's result to the result itself. */
function withWholeResultMarks(conversation: Conversation): Conversation {
  if (!conversation.turns.some(({ parts }) => parts.some(endsWithMark))) return conversation
  const turns = conversation.turns.map(({ role, parts }) => ({
    role,
    parts: parts.map((part) => (endsWithMark(part) ? withWholeMark(part) : part)),
  }))
  return { ...conversation, turns }
}

function withWholeMark(result: ToolResultPart): ToolResultPart {
  const last = result.parts.at(-1)
  if (!last || !isMarked(last)) return result
  const { cache, ...unmarked } = last
  return { ...result, parts: [...result.parts.slice(0, -1), unmarked], cache }
}

/** Whether a part is a tool's result that has no cache mark itself, but whose last part has one. */
function endsWithMark(part: Part): part is ToolResultPart {
  const last = part.kind === 'tool-result' && !part.cache ? part.parts.at(-1) : undefined
  return last !== undefined && isMarked(last)
}

function statedLifetime({ ttl, field }: CacheMark): CacheLifetime {
  return ttl ?? (field === CACHE_BREAKPOINT_FIELD ? '30m' : '5m')
}

/**
 * The lifetime that a cache mark gets at the upstream, as an index in the list of all lifetimes
 * (`CACHE_LIFETIMES`).
 */
function lifetimeOf(mark: CacheMark, lifetimes: readonly CacheLifetime[]): number {
  const least = CACHE_LIFETIMES.indexOf(statedLifetime(mark))
  const longer = lifetimes.find((lifetime) => CACHE_LIFETIMES.indexOf(lifetime) >= least)
  return CACHE_LIFETIMES.indexOf(longer ?? lifetimes.at(-1)!)
}

/**
 * Whether the lifetime of a cache mark can be omitted: the client omitted it too, and the upstream's default
 * is the lifetime that the mark gets.
 */
function isDefault(mark: CacheMark, ttl: CacheLifetime | undefined, { field }: CacheMarkRules): boolean {
  return mark.ttl === undefined && mark.field === field && ttl === statedLifetime({ ...mark, ttl: undefined })
}

/** Replaces each cache mark by the result of `change`, in the order of the prompt: tools, system, turns. */
function mapMarks(
  conversation: Conversation,
  change: (mark: CacheMark, place: CacheMarkPlace) => CacheMark | undefined,
): Conversation {
  const { system, turns, tools } = conversation
  if (![...system, ...tools].some(isMarked) && !turns.some(({ parts }) => parts.some(hasMarks)))
    return conversation
  const changed = <T extends SystemText | Tool | Part>(holder: T, place: CacheMarkPlace): T => {
    if (!isMarked(holder)) return holder
    const { cache, ...others } = holder
    const mark = change(cache, place)
    return { ...others, ...(mark && { cache: mark }) } as T
  }
  const changedPart = (part: Part, role: Turn['role']): Part => {
    if (part.kind === 'tool-call') return changed(part, 'call')
    if (part.kind !== 'tool-result') return changed(part, role === 'user' ? 'content' : 'answer')
    const parts = part.parts.map((inner) => changed(inner, 'result'))
    return changed({ ...part, parts }, 'result')
  }
  return {
    ...conversation,
    tools: tools.map((tool) => changed(tool, 'tool')),
    system: system.map((text) => changed(text, 'content')),
    turns: turns.map(({ role, parts }) => ({ role, parts: parts.map((part) => changedPart(part, role)) })),
  }
}

function isMarked<T extends object>(holder: T): holder is T & { readonly cache: CacheMark } {
  return 'cache' in holder && holder.cache !== undefined
}

function hasMarks(part: Part): boolean {
  return isMarked(part) || (part.kind === 'tool-result' && part.parts.some(isMarked))
}

import { digestOf } from './entries.ts'
import { dataOfEvents, hasFewJsonValues } from './json-values.ts'
import { type ContentPart, partsOfContent } from './parts.ts'

/** What the content log keeps of a part at level `metadata`: facts, but no texts. */
export interface PartFacts {
  readonly bytes: number
  readonly sha256: string
  readonly roles?: readonly string[]
  readonly tools?: readonly string[]
  readonly parameters?: Readonly<Record<string, string | number | boolean>>
  readonly finish_reason?: string
}

/**
 * The facts about each part of a call's content, by part. `lengths` are their sizes in bytes, −1 for an
 * absent part.
 */
export function contentFacts(
  content: Uint8Array,
  lengths: readonly number[],
): Partial<Record<ContentPart, PartFacts>> {
  const facts: Partial<Record<ContentPart, PartFacts>> = {}
  for (const [part, bytes] of Object.entries(partsOfContent(content, lengths)))
    facts[part as ContentPart] = {
      bytes: bytes.length,
      sha256: digestOf(bytes),
      ...factsOf(bytes, part.startsWith('request')),
    }
  return facts
}

// The functions below call themselves for nested JSON. If it is nested too deeply they throw, and there are
// no facts.
function factsOf(bytes: Buffer, isRequest: boolean): Omit<PartFacts, 'bytes' | 'sha256'> {
  try {
    return isRequest ? requestFacts(bytes) : answerFacts(bytes)
  } catch {
    return {}
  }
}

const MAX_NAMES = 1_000
const MAX_NAME_LENGTH = 200
/** Matches roles, finish reasons, and other words of the protocols, so that no sentence is kept. */
const WORD = /^[\w.-]{1,64}$/
/** Matches names of tools, which have no spaces. */
const TOOL = /^[\p{L}\p{N}\p{M}_.:/@-]{1,200}$/u

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function requestFacts(bytes: Buffer): Omit<PartFacts, 'bytes' | 'sha256'> {
  const request = parsed(bytes.toString())
  if (!isMembers(request)) return {}
  const turns = [request['messages'], request['input'], request['contents']].find(Array.isArray) ?? []
  const roles = (turns as unknown[]).flatMap((turn) => {
    const role = isMembers(turn) ? (turn['role'] ?? turn['type']) : undefined
    return typeof role === 'string' && WORD.test(role) ? [role] : []
  })
  const tools = toolNames(request['tools'])
  return {
    ...(roles.length > 0 && { roles: roles.slice(0, MAX_NAMES) }),
    ...(tools.length > 0 && { tools: tools.slice(0, MAX_NAMES) }),
    parameters: parametersOf(request),
  }
}

/** Parameters whose text values are fixed words of the protocol, so that they may be kept. */
const WORDS = new Set([
  'reasoning_effort',
  'service_tier',
  'tool_choice',
  'truncation',
  'verbosity',
  'encoding_format',
  'response_format',
  'size',
  'quality',
])

function parametersOf(request: Members): Record<string, string | number | boolean> {
  const parameters: Record<string, string | number | boolean> = {}
  const own = Object.entries(request)
  const nested = isMembers(request['generationConfig']) ? Object.entries(request['generationConfig']) : []
  for (const [name, value] of [...own, ...nested]) {
    if (!WORD.test(name)) continue
    if (typeof value === 'number' || typeof value === 'boolean') parameters[name] = value
    else if (typeof value !== 'string') continue
    else if (name === 'model') parameters[name] = value.slice(0, MAX_NAME_LENGTH)
    else if (WORDS.has(name) && WORD.test(value)) parameters[name] = value
  }
  return parameters
}

function toolNames(tools: unknown): string[] {
  if (!Array.isArray(tools)) return []
  return tools.flatMap((tool): string[] => {
    if (!isMembers(tool)) return []
    const declared = tool['functionDeclarations'] ?? tool['function_declarations']
    if (Array.isArray(declared)) return toolNames(declared)
    const nested = isMembers(tool['function'])
      ? tool['function']
      : isMembers(tool['custom'])
        ? tool['custom']
        : tool
    const name = nested['name'] ?? tool['type']
    return typeof name === 'string' && TOOL.test(name) ? [name] : []
  })
}

/** The fields that state why an answer ended, in the different protocols. */
const REASON_MEMBERS = new Set(['finish_reason', 'stop_reason', 'finishReason'])
/** The fields in which an answer or an event may contain a finish reason. */
const AROUND_REASON = new Set(['choices', 'delta', 'candidates', 'message', 'response'])

function answerFacts(bytes: Buffer): Omit<PartFacts, 'bytes' | 'sha256'> {
  const text = bytes.toString()
  const whole = parsed(text)
  let reason = reasonIn(whole)
  // Not one JSON document, so read the events of a stream, one at a time to save memory.
  if (whole === undefined)
    for (const { data } of dataOfEvents(text)) reason = reasonIn(parsed(data)) ?? reason
  return reason === undefined ? {} : { finish_reason: reason }
}

function reasonIn(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.map(reasonIn).findLast((found) => found !== undefined)
  if (!isMembers(value)) return undefined
  let found: string | undefined
  for (const [name, member] of Object.entries(value)) {
    const isReason =
      REASON_MEMBERS.has(name) || (name === 'status' && (value['object'] === 'response' || 'output' in value))
    if (isReason && typeof member === 'string' && WORD.test(member)) found = member
    else if (AROUND_REASON.has(name)) found = reasonIn(member) ?? found
  }
  return found
}

/** The value of a JSON text; undefined if the text is not JSON, or has too many values. */
function parsed(text: string): unknown {
  try {
    return hasFewJsonValues(text) ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** Maximum bytes of a request that is searched for texts; searching a larger one would delay other calls. */
const MAX_BODY_BYTES = 1024 * 1024

/** The parts of a request in which texts are found. */
export interface RequestSources {
  /** The body in JSON; empty for a form. */
  readonly body: Buffer
  /** Texts of the fields of a form; undefined if some of them are only on disk. */
  readonly fields: readonly string[] | undefined
  /** The URL's path with its query. */
  readonly url: string
}

export interface RequestContent {
  /** All strings in the request, among them names and settings. */
  readonly texts: readonly string[]
  /** Strings that belong to the conversation. */
  readonly values: readonly string[]
}

/** Members of requests that contain a conversation or other texts of users, in every protocol. */
const CONVERSATION: ReadonlySet<string> = new Set([
  'contents',
  'documents',
  'input',
  'instructions',
  'messages',
  'prompt',
  'query',
  'suffix',
  'system',
  'systemInstruction',
  'system_instruction',
])

/** Members inside a conversation whose texts are terms of the protocol or names, not content. */
const MEMBERS_WITHOUT_CONTENT: ReadonlySet<string> = new Set([
  'call_id',
  'detail',
  'effort',
  'format',
  'id',
  'media_type',
  'mimeType',
  'mime_type',
  'model',
  'name',
  'role',
  'status',
  'tool_call_id',
  'tool_use_id',
  'type',
])

/** Members inside a conversation whose own members have names that users choose. */
const DATA: ReadonlySet<string> = new Set(['args', 'arguments', 'input', 'output', 'response', 'result'])

/** A value of a request that is still to be visited, and whether texts in it are content. */
interface Visit {
  readonly value: unknown
  readonly where: 'elsewhere' | 'conversation' | 'data'
}

/** Lists the texts of a request; undefined if it is too large, or not in memory. */
export function textsOfRequest({ body, fields, url }: RequestSources): RequestContent | undefined {
  if (body.length > MAX_BODY_BYTES || fields === undefined) return undefined
  const inQuery = url.includes('?') ? [...new URLSearchParams(url.slice(url.indexOf('?'))).values()] : []
  const texts = [...fields, ...inQuery]
  const values = [...fields]
  const parsed = body.length === 0 ? null : parsedJson(body.toString())
  if (parsed === undefined) return undefined
  const visits: Visit[] = Object.entries(parsed ?? {}).map(([name, value]) => ({
    value,
    where: CONVERSATION.has(name) ? 'conversation' : 'elsewhere',
  }))
  for (let visit = visits.pop(); visit; visit = visits.pop()) {
    const { value, where } = visit
    if (typeof value === 'string') {
      texts.push(value)
      if (where === 'elsewhere') continue
      values.push(value)
      // Arguments of tool calls are JSON in a string.
      if (where === 'data' && /^\s*[[{]/.test(value)) visits.push({ value: parsedJson(value), where })
    } else if (Array.isArray(value)) for (const entry of value) visits.push({ value: entry, where })
    else if (typeof value === 'object' && value !== null)
      for (const [name, member] of Object.entries(value))
        visits.push({ value: member, where: whereIs(name, where) })
  }
  return { texts, values }
}

function whereIs(name: string, outer: Visit['where']): Visit['where'] {
  if (outer !== 'conversation') return outer
  if (DATA.has(name)) return 'data'
  return MEMBERS_WITHOUT_CONTENT.has(name) ? 'elsewhere' : 'conversation'
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

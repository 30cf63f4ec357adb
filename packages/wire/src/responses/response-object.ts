import { promptTokens, type Usage, cacheWriteTokens } from '../usage.ts'
import type { ReplyIdentity } from '../codec.ts'
import type { RepeatedFields, ReplyContext } from '../conversation.ts'
import {
  jsonArrayOf,
  jsonMembersOf,
  renderArray,
  renderObject,
  replaceMemberValue,
  withMissingMembers,
} from '../json/json-edit.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'

/** Settings that a response object repeats from its request, with their default values as JSON text. */
const SETTINGS = {
  background: 'false',
  frequency_penalty: '0',
  instructions: 'null',
  max_output_tokens: 'null',
  max_tool_calls: 'null',
  metadata: '{}',
  parallel_tool_calls: 'true',
  presence_penalty: '0',
  previous_response_id: 'null',
  prompt_cache_key: 'null',
  reasoning: '{"effort":null,"summary":null}',
  safety_identifier: 'null',
  service_tier: '"default"',
  store: 'false',
  temperature: '1',
  text: '{"format":{"type":"text"}}',
  tool_choice: '"auto"',
  tools: '[]',
  top_logprobs: '0',
  top_p: '1',
  truncation: '"disabled"',
  user: 'null',
} as const

/** Settings that the client does not decide, or that conversions leave out. */
const NOT_REPEATED: ReadonlySet<string> = new Set([
  'store',
  'service_tier',
  'presence_penalty',
  'frequency_penalty',
])

/** Settings that a response repeats as the client wrote them. */
const REPEATED_FIELDS: readonly string[] = Object.keys(SETTINGS).filter((name) => !NOT_REPEATED.has(name))

/**
 * Members that the schema requires in settings, and that requests may leave out; Open Responses 2026-04-24,
 * `Reasoning`, `TextField`, `JsonSchemaResponseFormat` and `FunctionTool`.
 */
const REASONING = { effort: 'null', summary: 'null' }
const TEXT = { format: '{"type":"text"}' }
const JSON_SCHEMA = { description: 'null', strict: 'false' }
const FUNCTION = { description: 'null', parameters: 'null', strict: 'null' }

/** Reads the settings that the response repeats, and adds the members that the schema requires in them. */
export function repeatedSettings(scan: ScannedObject): RepeatedFields {
  return new Map(
    REPEATED_FIELDS.flatMap((name) => {
      const node = scan.span(name)?.node
      if (node === undefined || scan.kindOf(node) === 'null') return []
      return [[name, completeSetting(scan, name, node) ?? scan.textOf(node)] as const]
    }),
  )
}

/** Returns undefined if the setting has all its members. */
function completeSetting(scan: ScannedObject, name: string, node: Node): string | undefined {
  const kind = scan.kindOf(node)
  if (name === 'tools' && kind === 'array')
    return renderArray(scan, node, (tool) => {
      const text = isOfType(scan, tool, 'function') && withMissingMembers(scan, tool, FUNCTION)
      return text ? { text } : 'stays'
    })
  if (kind !== 'object') return undefined
  if (name === 'reasoning') return withMissingMembers(scan, node, REASONING)
  if (name !== 'text') return undefined
  const format = scan.memberOf(node, 'format')
  if (format === undefined || !isOfType(scan, format, 'json_schema'))
    return withMissingMembers(scan, node, TEXT)
  const text = withMissingMembers(scan, format, JSON_SCHEMA)
  return text && replaceMemberValue(scan, node, format, text)
}

function isOfType(scan: ScannedObject, node: Node, type: string): boolean {
  const member = scan.kindOf(node) === 'object' ? scan.memberOf(node, 'type') : undefined
  return member !== undefined && scan.kindOf(member) === 'string' && scan.parse(member) === type
}

/** Writes a response object with the default settings, for events that the gateway adds to a native stream. */
export function writeWithDefaults(head: object, usage: object | null): string {
  const members = [...jsonMembersOf(head), ...Object.entries(SETTINGS)]
  return renderObject([...members, ['usage', JSON.stringify(usage)]])
}

/** What a response object states at one point of its stream. */
interface State {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly incompleteReason?: string | undefined
  readonly error?: { readonly code: string; readonly message: string }
  /** The items that are complete, as JSON texts. */
  readonly output: readonly string[]
  readonly usage?: Usage | undefined
}

/** Writes the response object, which a stream contains several times with a different status. */
export class ResponseObject {
  readonly id: string
  readonly #identity: ReplyIdentity
  readonly #settings: string
  #model = ''

  constructor(identity: ReplyIdentity, replyContext: ReplyContext | undefined) {
    const { id } = identity
    this.id = id.startsWith('resp_') ? id : `resp_${id}`
    this.#identity = identity
    const repeated = replyContext?.repeated
    this.#settings = renderObject(
      Object.entries(SETTINGS).map(([name, text]) => [name, repeated?.get(name) ?? text]),
    ).slice(1, -1)
  }

  /** The name of the model as the upstream reports it. */
  set model(name: string) {
    this.#model = name
  }

  /** The part of the response's id that the ids of its items contain as well. */
  get itemKey(): string {
    return this.id.slice('resp_'.length)
  }

  /** Renders the response object as JSON text. */
  write({ status, incompleteReason, error, output, usage }: State): string {
    const { created, now } = this.#identity
    const head = JSON.stringify({
      id: this.id,
      object: 'response',
      created_at: created,
      status,
      completed_at: status === 'completed' ? (now?.() ?? created) : null,
      error: error ?? null,
      incomplete_details: incompleteReason === undefined ? null : { reason: incompleteReason },
      model: this.#model,
    })
    const usageText = usage ? JSON.stringify(usageOut(usage)) : 'null'
    return `${head.slice(0, -1)},"output":${jsonArrayOf(output)},${this.#settings},"usage":${usageText}}`
  }
}

/** Renders usage. In this protocol, the input includes tokens read from and written to a cache. */
function usageOut(usage: Usage): object {
  const input = promptTokens(usage)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cacheRead,
      cache_write_tokens: cacheWriteTokens(usage),
    },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: input + usage.output,
  }
}

import type { OfferedTool, ProviderTools } from '../../tool-use.ts'
import { WireError } from '../../wire-error.ts'
import {
  boolean,
  type Check,
  checkEachObject,
  checkMembers,
  checkSecret,
  integer,
  isPresent,
  isText,
  kindName,
  modelName,
  outputTokens,
  refuse,
  requestSchema,
  text,
} from '../../field-check.ts'
import { asRecord } from '../../json/record.ts'
import type { Member, ScannedObject } from '../../json/scanned-object.ts'
import type { PromptBounds } from '../../prompt-tokens.ts'
import { toolsBesides } from '../../tools-besides.ts'
import { type JsonSchema, withSchema } from '../../with-schema.ts'
import { CONVERTED_CHECKS } from '../converted-checks.ts'
import { itemNodes } from './items.ts'
import { promptBounds } from './prompt.ts'

/** Fields of a request that the gateway reads; all others pass as they came. */
export interface ResponsesRequest extends PromptBounds {
  readonly model: string
  readonly stream: boolean
  readonly maxTokens: number | undefined
  /** Number of input items; a text counts as one. */
  readonly itemCount: number
  /** Tools that the provider runs; absent if there are none. */
  readonly providerTools?: ProviderTools
  /** Whether the response is generated after the call has ended. */
  readonly background: boolean
  /** Whether to store the response; undefined means the dialect's default, which is true. */
  readonly store: boolean | undefined
  /** Id of the response that is continued. */
  readonly previousResponseId: string | undefined
}

const typed: JsonSchema = { type: 'object', required: ['type'], properties: { type: isText.schema } }

/**
 * The fields that the gateway needs to route, hold or charge. Checking all others is left to the provider.
 */
export const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelName],
  [
    'input',
    withSchema(
      {
        anyOf: [
          { type: 'string', minLength: 1 },
          { type: 'array', items: { type: 'object' } },
        ],
      },
      checkInput,
    ),
  ],
  ['stream', boolean],
  ['store', boolean],
  ['background', boolean],
  ['previous_response_id', checkSecret('a string', isText)],
  ['max_output_tokens', outputTokens],
  ['max_tool_calls', integer],
  ['tools', withSchema({ type: 'array', items: typed }, checkTools)],
  ['service_tier', text],
])

/** Required fields. */
export const REQUIRED = ['model'] as const
/** At least one of these fields must be given, because they contain or refer to the input. */
const ASKS = ['input', 'previous_response_id', 'conversation', 'prompt'] as const

/** JSON Schema of the requests that `readResponsesRequest` accepts. */
export function responsesRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHECKS, CONVERTED_CHECKS)
}

/**
 * Checks the fields of a request that the gateway reads; null in an optional field counts as absent, other
 * fields pass. Throws `invalid_request` that names the field, the expected and the actual value. For a field
 * that can contain a prompt the error shows only the kind of value.
 */
export function readResponsesRequest(scan: ScannedObject): ResponsesRequest {
  checkMembers(scan, REQUIRED, CHECKS)
  if (!ASKS.some((field) => isPresent(scan, field)))
    throw new WireError('invalid_request', `'input' is required.`)
  const input = scan.span('input')
  const isList = input !== undefined && scan.kindOf(input.node) === 'array'
  if (isList && input.count === 0 && !ASKS.slice(1).some((field) => isPresent(scan, field)))
    refuse('input', 'a string or a non-empty array of items', 'an empty array')
  const offered = offeredTools(scan)
  return {
    model: scan.value('model') as string,
    stream: scan.value('stream') === true,
    maxTokens: (scan.value('max_output_tokens') as number | null | undefined) ?? undefined,
    itemCount: isList ? input.count : Number(isPresent(scan, 'input')),
    background: scan.value('background') === true,
    store: (scan.value('store') as boolean | null | undefined) ?? undefined,
    previousResponseId: (scan.value('previous_response_id') as string | null | undefined) ?? undefined,
    ...(offered && { providerTools: offered }),
    ...promptBounds(scan),
  }
}

function checkInput(scan: ScannedObject, { node }: Member): void {
  const kind = scan.kindOf(node)
  if (kind === 'string') {
    if (scan.endOf(node) - scan.startOf(node) <= 2)
      refuse('input', 'a non-empty string or an array of items', 'an empty string')
    return
  }
  if (kind !== 'array') refuse('input', 'a string or an array of items', kindName(scan, node))
  checkEachObject(scan, node, 'input', (item, path) => {
    for (const member of ['type', 'role'] as const) {
      const value = scan.memberOf(item, member)
      if (value !== undefined && scan.kindOf(value) !== 'string' && scan.kindOf(value) !== 'null')
        refuse(`${path}.${member}`, 'a string', kindName(scan, value))
    }
  })
}

function checkTools(scan: ScannedObject, { node }: Member): void {
  checkEachObject(scan, node, 'tools', (tool, path) => {
    const type = scan.memberOf(tool, 'type')
    if (type === undefined) refuse(`${path}.type`, 'a string', 'nothing')
    if (scan.kindOf(type) !== 'string') refuse(`${path}.type`, 'a string', kindName(scan, type))
  })
}

/** Types of tools that the client runs. */
const OF_CLIENTS: ReadonlySet<unknown> = new Set(['function', 'custom'])
const NONE: readonly OfferedTool[] = []

/**
 * The tools of a checked request that its provider runs, and others with types of their own: those in
 * `tools`, and those that input items add (`additional_tools`, `tool_search_output`). According to OpenAI a
 * namespace contains only functions and custom tools; any other tool in it counts as it would outside.
 */
function offeredTools(scan: ScannedObject): ProviderTools | undefined {
  const tools = [...toolsBesides(scan, OF_CLIENTS).flatMap(offered), ...itemTools(scan)]
  if (tools.length === 0) return undefined
  const maxCalls = scan.value('max_tool_calls')
  return { tools, ...(typeof maxCalls === 'number' && { maxCalls }) }
}

function offeredIn(list: unknown): readonly OfferedTool[] {
  return Array.isArray(list) ? list.flatMap((tool: unknown) => offered(asRecord(tool) ?? {})) : NONE
}

function itemTools(scan: ScannedObject): readonly OfferedTool[] {
  return itemNodes(scan).flatMap((item) => {
    const list = scan.memberOf(item, 'tools')
    return list === undefined ? NONE : offeredIn(scan.parse(list))
  })
}

function offered(tool: Readonly<Record<string, unknown>>): OfferedTool[] {
  const { type, size, quality } = tool
  if (typeof type !== 'string' || OF_CLIENTS.has(type)) return []
  if (type === 'namespace') return [...offeredIn(tool['tools'])]
  if (type === 'shell') {
    const environment = asRecord(tool['environment'])
    // Without a container, the client runs the commands.
    return String(environment?.['type']).startsWith('container')
      ? [{ type, form: memoryOf(environment) }]
      : []
  }
  if (type === 'code_interpreter') return [{ type, form: memoryOf(asRecord(tool['container'])) }]
  const isFixed = [size, quality].every((value) => typeof value === 'string' && value !== 'auto')
  if (type === 'image_generation' && isFixed) return [{ type, form: `${String(size)}/${String(quality)}` }]
  return [{ type }]
}

function memoryOf(container: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const limit = container?.['memory_limit']
  return typeof limit === 'string' ? limit : undefined
}

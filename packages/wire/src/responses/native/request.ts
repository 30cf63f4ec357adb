import { type OfferedTool, type ProviderTools, statedMaximum, toolsExceptTypes } from '../../tool-use.ts'
import { WireError } from '../../wire-error.ts'
import {
  booleanCheck,
  type Check,
  checkEachObject,
  checkMembers,
  createSecretCheck,
  createValueCheck,
  integerCheck,
  isInteger,
  isNumber,
  isPresent,
  isText,
  isTexts,
  type JsonSchema,
  kindName,
  modelNameCheck,
  objectCheck,
  outputTokensCheck,
  refuseField,
  requestSchema,
  textCheck,
  withSchema,
} from '../../field-check.ts'
import { asRecord } from '../../json/record.ts'
import { carriesModel } from '../../model-tools.ts'
import type { Member, ScannedObject } from '../../json/scanned-object.ts'
import type { PromptBounds, PromptText } from '../../prompt-tokens.ts'
import { inputItemNodes, hasItemReferences } from './items.ts'
import { promptBounds, RESPONSES_PROMPT_RULES } from './prompt.ts'
import { knownNames, requestNames } from '../../request-names.ts'
import { RESPONSES_REQUEST } from '../shape.ts'
import { promptText } from '../../prompt-text.ts'

/** The fields of a request that the gateway reads. All other fields are forwarded unchanged. */
export interface ResponsesRequest extends PromptBounds {
  readonly model: string
  readonly stream: boolean
  readonly maxTokens: number | undefined
  /** Tools of the request that the provider runs; absent if there are none. */
  readonly providerTools?: ProviderTools
  /** Whether the response is generated in the background, after the call has ended. */
  readonly background: boolean
  /** Whether the response is to be stored; undefined for the protocol's default, which is true. */
  readonly store: boolean | undefined
  /** Id of the previous response that this request continues. */
  readonly previousResponseId: string | undefined
}

const typed: JsonSchema = { type: 'object', required: ['type'], properties: { type: isText.schema } }

/**
 * Checks for the request fields that the gateway needs to choose a channel, or to reserve quota and charge
 * the call. All other request fields are checked only by the provider.
 */
const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelNameCheck],
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
  ['stream', booleanCheck],
  ['store', booleanCheck],
  ['background', booleanCheck],
  ['previous_response_id', createSecretCheck('a string', isText)],
  ['max_output_tokens', outputTokensCheck],
  ['max_tool_calls', integerCheck],
  ['tools', withSchema({ type: 'array', items: typed }, checkTools)],
  ['service_tier', textCheck],
])

/** Fields without which a request is refused. */
const REQUIRED = ['model'] as const
/** The request must have at least one of these fields, because they contain or refer to the input. */
const ASKS = ['input', 'previous_response_id', 'conversation', 'prompt'] as const

/** Builds the JSON Schema of a valid responses request, for the description of the API. */
export function responsesRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHECKS, RESPONSES_CONVERSION_CHECKS)
}

/**
 * Checks the fields of a request that the gateway reads. Null in an optional field counts as absent; other
 * fields are not checked. Throws `invalid_request` that names the field, the expected and the actual value.
 * If the field may contain a prompt, the error states only the type of the value.
 */
export function readResponsesRequest(scan: ScannedObject): ResponsesRequest {
  checkMembers(scan, REQUIRED, CHECKS)
  if (!ASKS.some((field) => isPresent(scan, field)))
    throw new WireError('invalid_request', `'input' is required.`)
  const input = scan.span('input')
  const isList = input !== undefined && scan.kindOf(input.node) === 'array'
  if (isList && input.count === 0 && !ASKS.slice(1).some((field) => isPresent(scan, field)))
    refuseField('input', 'a string or a non-empty array of items', 'an empty array')
  const offered = offeredTools(scan)
  return {
    model: scan.value('model') as string,
    stream: scan.value('stream') === true,
    maxTokens: (scan.value('max_output_tokens') as number | null | undefined) ?? undefined,
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
      refuseField('input', 'a non-empty string or an array of items', 'an empty string')
    return
  }
  if (kind !== 'array') refuseField('input', 'a string or an array of items', kindName(scan, node))
  checkEachObject(scan, node, 'input', (item, path) => {
    for (const member of ['type', 'role'] as const) {
      const value = scan.memberOf(item, member)
      if (value !== undefined && scan.kindOf(value) !== 'string' && scan.kindOf(value) !== 'null')
        refuseField(`${path()}.${member}`, 'a string', kindName(scan, value))
    }
  })
}

function checkTools(scan: ScannedObject, { node }: Member): void {
  checkEachObject(scan, node, 'tools', (tool, path) => {
    const type = scan.memberOf(tool, 'type')
    if (type === undefined) refuseField(`${path()}.type`, 'a string', 'nothing')
    if (scan.kindOf(type) !== 'string') refuseField(`${path()}.type`, 'a string', kindName(scan, type))
  })
}

/** Types of tools that the client runs itself, not the provider. */
const OF_CLIENTS: ReadonlySet<unknown> = new Set(['function', 'custom'])
const NONE: readonly OfferedTool[] = []

/**
 * The tools of a checked request that its provider runs: those in `tools`, and those that input items add
 * (`additional_tools`, `tool_search_output`). Tools of unknown types are included. According to OpenAI, a
 * namespace contains only functions and custom tools; any other tool in it is treated as if it were outside.
 */
function offeredTools(scan: ScannedObject): ProviderTools | undefined {
  const tools = [...toolsExceptTypes(scan, OF_CLIENTS).flatMap(offered), ...itemTools(scan)]
  if (tools.length === 0) return undefined
  const maxCalls = statedMaximum(scan.value('max_tool_calls'))
  return { tools, ...(maxCalls !== undefined && { maxCalls }) }
}

function offeredIn(list: unknown): readonly OfferedTool[] {
  return Array.isArray(list) ? list.flatMap((tool: unknown) => offered(asRecord(tool) ?? {})) : NONE
}

function itemTools(scan: ScannedObject): readonly OfferedTool[] {
  return inputItemNodes(scan).flatMap((item) => {
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
  const results = type === 'file_search' ? statedMaximum(tool['max_num_results']) : undefined
  return [
    {
      type,
      ...(carriesModel(tool) && { allowedBy: 'models' }),
      ...(results !== undefined && { maxResultTokens: results * TOKENS_PER_RESULT }),
    },
  ]
}

/**
 * Maximum tokens of one result of a file search: a chunk has at most 4,096, to which the name and the
 * attributes of its file are added.
 */
const TOKENS_PER_RESULT = 8192

function memoryOf(container: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const limit = container?.['memory_limit']
  return typeof limit === 'string' ? limit : undefined
}

const secretText = createSecretCheck('a string', isText)
const effort = { type: 'object', properties: { effort: { type: ['string', 'null'] } } }

/**
 * Checks for request fields that are checked only when a request is converted. If a request is forwarded
 * without conversion, the provider checks them. Values of enumerations are not restricted, because a provider
 * may accept more values.
 */
export const RESPONSES_CONVERSION_CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  [
    'instructions',
    createSecretCheck(
      'a string',
      withSchema({ type: ['string', 'array'] }, (value: unknown) => isText(value) || Array.isArray(value)),
    ),
  ],
  ['stream_options', objectCheck],
  [
    'conversation',
    createSecretCheck(
      'a string or an object',
      withSchema(
        { type: ['string', 'object'] },
        (value: unknown) => isText(value) || asRecord(value) !== undefined,
      ),
    ),
  ],
  ['include', createValueCheck('an array of strings', isTexts)],
  ['parallel_tool_calls', booleanCheck],
  ['temperature', createValueCheck('a number from 0 to 2', isNumber(0, 2))],
  ['top_p', createValueCheck('a number from 0 to 1', isNumber(0, 1))],
  ['top_logprobs', createValueCheck('an integer from 0 to 20', isInteger(0, 20))],
  [
    'tool_choice',
    createSecretCheck(
      'a string or an object with a type',
      withSchema(
        { anyOf: [isText.schema, typed] },
        (value: unknown) => isText(value) || isText(asRecord(value)?.['type']),
      ),
    ),
  ],
  ['text', objectCheck],
  ['reasoning', createSecretCheck('an object whose effort is a string', withSchema(effort, isReasoning))],
  ['truncation', textCheck],
  [
    'metadata',
    createSecretCheck(
      'an object of strings',
      withSchema({ type: 'object', additionalProperties: isText.schema }, (value: unknown) =>
        Object.values(asRecord(value) ?? { not: 1 }).every(isText),
      ),
    ),
  ],
  ['prompt_cache_key', secretText],
  ['prompt_cache_retention', textCheck],
  ['prompt_cache_options', objectCheck],
  ['safety_identifier', secretText],
  ['user', secretText],
  ['prompt', objectCheck],
])

function isReasoning(value: unknown): boolean {
  const reasoning = asRecord(value)
  return reasoning !== undefined && isText(reasoning['effort'] ?? '')
}

/** Names of the fields in requests for responses, for compaction, and for counting tokens. */
export const responsesFieldNames = requestNames(
  [...CHECKS.keys(), ...RESPONSES_CONVERSION_CHECKS.keys()],
  RESPONSES_REQUEST,
  {
    members: { Item: 'namespace', Reasoning: 'max_tokens enabled' },
    below: {
      'Request.stream_options': knownNames('include_obfuscation include_usage'),
    },
  },
)

/** Request fields that refer to input stored elsewhere. */
const REFERENCES = ['previous_response_id', 'conversation', 'prompt'] as const

/**
 * Returns the model for which a request wants tokens to be counted. Throws `invalid_request` if a field of
 * the request is invalid, as for a responses request.
 */
export function countedModel(scan: ScannedObject): string {
  checkMembers(scan, REQUIRED, CHECKS)
  return scan.value('model') as string
}

/**
 * Returns the text of a checked request whose tokens are to be counted. Throws `invalid_request` if its input
 * refers to something outside the request. `isComposed` says that references were already replaced by their
 * contents, `mayRefer` that references to items may remain, which are not counted.
 */
export function textToCount(scan: ScannedObject, isComposed: boolean, mayRefer: boolean): PromptText {
  for (const field of REFERENCES)
    if (isPresent(scan, field) && !(isComposed && field === 'previous_response_id')) refuseReference(field)
  if (!mayRefer && hasItemReferences(scan)) refuseReference('input')
  return promptText(scan, RESPONSES_PROMPT_RULES, '')
}

function refuseReference(field: string): never {
  refuseField(field, `all items in 'input' where no channel of the model counts tokens`, 'a reference')
}

/** Checks a compaction request like a responses request. Throws `invalid_request` if it asks for a stream. */
export function readCompactionRequest(scan: ScannedObject): ResponsesRequest {
  const { providerTools: _, ...request } = readResponsesRequest(scan)
  if (request.stream) refuseField('stream', 'false: a compaction is not streamed', 'true')
  // With `store: false` the gateway does not add a `store` field, which compaction requests do not have.
  return { ...request, background: false, store: false }
}

import { WireError } from '../../wire-error.ts'
import {
  booleanCheck,
  type Check,
  checkEachMessage,
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
  NO_MAXIMUM,
  maximumOrUnlimitedFrom,
  refuseField,
  requestSchema,
  textCheck,
  withSchema,
} from '../../field-check.ts'
import { type OfferedTool, type ProviderTools, toolsExceptTypes } from '../../tool-use.ts'
import { asRecord } from '../../json/record.ts'
import { carriesModel } from '../../model-tools.ts'
import type { JsonKind, Member, ScannedObject } from '../../json/scanned-object.ts'
import type { PromptBounds } from '../../prompt-tokens.ts'
import { promptBounds } from './prompt.ts'

/** The fields of a chat request that the gateway reads. All other fields are forwarded unchanged. */
export interface ChatRequest extends PromptBounds {
  readonly model: string
  readonly stream: boolean
  /** Whether the client requested the stream's chunk with usage. */
  readonly includeUsage: boolean
  readonly n: number
  /** The larger one of max_tokens and max_completion_tokens. Undefined if both are absent. */
  readonly maxTokens: number | undefined
  /** The tools that the provider runs. Absent if there are none. */
  readonly providerTools?: ProviderTools
}

const secretText = createSecretCheck('a string', isText)
const penalty = createValueCheck('a number from -2 to 2', isNumber(-2, 2))
/** The schema of an object with a member that is a string. */
const objectWith = (field: string): JsonSchema => ({
  type: 'object',
  required: [field],
  properties: { [field]: isText.schema },
})
const isTyped = withSchema(objectWith('type'), (value: unknown) => isText(asRecord(value)?.['type']))
const choice = createSecretCheck(
  'a string or an object with a type',
  withSchema({ anyOf: [isText.schema, isTyped.schema] }, (value: unknown) => isText(value) || isTyped(value)),
)
/** Checks the field `stop`; an error does not contain its value. */
export const checkStop = createSecretCheck(
  'a string or an array of up to 4 strings',
  withSchema({ anyOf: [isText.schema, { ...isTexts.schema, maxItems: 4 }] }, isStop),
)
/** Checks the field `stream_options`. */
export const streamOptionsCheck = withSchema(
  { type: 'object', properties: { include_usage: { type: ['boolean', 'null'] } } },
  checkStreamOptions,
)
const isTokenBias = isNumber(-100, 100)
const topLogprobs = createValueCheck('an integer from 0 to 20', isInteger(0, 20))

const message: JsonSchema = {
  type: 'object',
  required: ['role'],
  properties: { role: isText.schema, content: { type: ['string', 'array', 'null'] } },
}
const CONTENT: ReadonlySet<JsonKind> = new Set(['string', 'array', 'null'])

/**
 * Checks for the table in `docs/api.md: Chat completions`, one for each row. Unknown values of enumerations
 * are accepted, because a provider may have further values.
 */
export const CHAT_FIELD_CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelNameCheck],
  ['messages', withSchema({ type: 'array', minItems: 1, items: message }, checkMessages)],
  ['max_tokens', maximumOrUnlimitedFrom(1)],
  ['max_completion_tokens', maximumOrUnlimitedFrom(1)],
  ['stream', booleanCheck],
  ['stream_options', streamOptionsCheck],
  ['n', createValueCheck('an integer from 1 to 128', isInteger(1, 128))],
  ['stop', checkStop],
  ['temperature', createValueCheck('a number from 0 to 2', isNumber(0, 2))],
  ['top_p', createValueCheck('a number from 0 to 1', isNumber(0, 1))],
  ['top_k', integerCheck],
  ['seed', integerCheck],
  ['presence_penalty', penalty],
  ['frequency_penalty', penalty],
  [
    'logit_bias',
    createSecretCheck(
      'an object of numbers from -100 to 100',
      withSchema({ type: 'object', additionalProperties: isTokenBias.schema }, isLogitBias),
    ),
  ],
  ['logprobs', booleanCheck],
  ['top_logprobs', withSchema({ ...topLogprobs.schema }, checkTopLogprobs)],
  [
    'tools',
    withSchema(
      {
        type: 'array',
        items: {
          type: 'object',
          properties: { type: isText.schema },
          anyOf: [{ required: ['type'] }, { required: ['function'] }],
        },
      },
      checkTools,
    ),
  ],
  ['tool_choice', choice],
  ['parallel_tool_calls', booleanCheck],
  ['response_format', createSecretCheck('an object with a type', isTyped)],
  [
    'function_call',
    createSecretCheck(
      'a string or an object with a name',
      withSchema({ anyOf: [isText.schema, objectWith('name')] }, isFunctionCall),
    ),
  ],
  ['functions', withSchema({ type: 'array', items: objectCheck.schema }, checkFunctions)],
  ['prediction', objectCheck],
  ['reasoning_effort', textCheck],
  ['verbosity', textCheck],
  ['modalities', createValueCheck('an array of strings', isTexts)],
  ['audio', objectCheck],
  [
    'web_search_options',
    createSecretCheck(
      'an object whose search_context_size is a string',
      withSchema(
        { type: 'object', properties: { search_context_size: { type: ['string', 'null'] } } },
        isWebSearchOptions,
      ),
    ),
  ],
  ['prompt_cache_key', secretText],
  ['prompt_cache_retention', textCheck],
  ['store', booleanCheck],
  [
    'metadata',
    createSecretCheck(
      'an object of strings',
      withSchema({ type: 'object', additionalProperties: isText.schema }, (value: unknown) =>
        Object.values(asRecord(value) ?? { not: 1 }).every(isText),
      ),
    ),
  ],
  ['user', secretText],
  ['safety_identifier', secretText],
  ['service_tier', textCheck],
])

const REQUIRED = ['model', 'messages'] as const

/** Builds the JSON Schema of valid chat requests. */
export function chatRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHAT_FIELD_CHECKS)
}

/**
 * Applies the checks for the table in `docs/api.md: Chat completions`. Null in an optional field counts as
 * absent; fields outside the table are not checked. Throws `invalid_request` with the field, and the expected
 * and the actual value. For a field that can contain a prompt, the error states only the kind of the value.
 */
export function readChatRequest(scan: ScannedObject): ChatRequest {
  checkMembers(scan, REQUIRED, CHAT_FIELD_CHECKS)
  const offered = offeredTools(scan)
  return {
    model: scan.value('model') as string,
    stream: scan.value('stream') === true,
    includeUsage: asRecord(scan.value('stream_options'))?.['include_usage'] === true,
    n: (scan.value('n') as number | null | undefined) ?? 1,
    maxTokens: outputMaximumIn(scan),
    ...(offered && { providerTools: offered }),
    ...promptBounds(scan),
  }
}

/**
 * The larger one of `max_tokens` and `max_completion_tokens`; undefined if neither states a maximum.
 */
export function outputMaximumIn(scan: ScannedObject): number | undefined {
  const limits = [scan.value('max_tokens'), scan.value('max_completion_tokens')].filter(
    (limit): limit is number => typeof limit === 'number' && limit !== NO_MAXIMUM,
  )
  return limits.length > 0 ? Math.max(...limits) : undefined
}

function checkMessages(scan: ScannedObject, member: Member): void {
  checkEachMessage(scan, member, (message, path) => {
    const role = scan.memberOf(message, 'role')
    if (role === undefined) refuseField(`${path()}.role`, 'a string', 'nothing')
    if (scan.kindOf(role) !== 'string') refuseField(`${path()}.role`, 'a string', kindName(scan, role))
    const content = scan.memberOf(message, 'content')
    if (content !== undefined && !CONTENT.has(scan.kindOf(content)))
      refuseField(`${path()}.content`, 'a string or an array of parts', kindName(scan, content))
  })
}

/**
 * Checks tools. Some clients and providers omit the type of a function, so a tool without a type is accepted.
 */
function checkTools(scan: ScannedObject, { node }: Member): void {
  checkEachObject(scan, node, 'tools', (tool, path) => {
    const type = scan.memberOf(tool, 'type')
    if (type === undefined && scan.memberOf(tool, 'function') !== undefined) return
    if (type === undefined) refuseField(`${path()}.type`, 'a string', 'nothing')
    if (scan.kindOf(type) !== 'string') refuseField(`${path()}.type`, 'a string', kindName(scan, type))
  })
}

function checkFunctions(scan: ScannedObject, { node }: Member): void {
  checkEachObject(scan, node, 'functions', () => {})
}

function checkStreamOptions(scan: ScannedObject, { node }: Member): void {
  if (scan.kindOf(node) !== 'object') refuseField('stream_options', 'an object', kindName(scan, node))
  const includeUsage = scan.memberOf(node, 'include_usage')
  if (includeUsage === undefined) return
  const kind = scan.kindOf(includeUsage)
  if (kind === 'true' || kind === 'false' || kind === 'null') return
  refuseField('stream_options.include_usage', 'true or false', kindName(scan, includeUsage))
}

function checkTopLogprobs(scan: ScannedObject, member: Member): void {
  topLogprobs(scan, member)
  if (scan.value('logprobs') !== true) {
    throw new WireError('invalid_request', `'top_logprobs' requires 'logprobs' to be true.`)
  }
}

function isStop(value: unknown): boolean {
  return isText(value) || (isTexts(value) && (value as unknown[]).length <= 4)
}

function isLogitBias(value: unknown): boolean {
  return Object.values(asRecord(value) ?? { not: undefined }).every(isTokenBias)
}

function isFunctionCall(value: unknown): boolean {
  return isText(value) || isText(asRecord(value)?.['name'])
}

function isWebSearchOptions(value: unknown): boolean {
  const options = asRecord(value)
  return options !== undefined && isText(options['search_context_size'] ?? '')
}

/** The types of tools that the client runs. */
const OF_CLIENTS: ReadonlySet<unknown> = new Set(['function', 'custom'])

function hasWebPlugin(plugins: unknown): boolean {
  return Array.isArray(plugins) && plugins.some((plugin) => asRecord(plugin)?.['id'] === 'web')
}

/**
 * The tools that the provider runs: `web_search_options`, `search_parameters` (xAI) and a plugin (OpenRouter)
 * request web search, and other tools have a type of their own.
 */
function offeredTools(scan: ScannedObject): ProviderTools | undefined {
  const tools: OfferedTool[] = toolsExceptTypes(scan, OF_CLIENTS).flatMap((tool) => {
    const { type } = tool
    return typeof type === 'string' ? [{ type, ...(carriesModel(tool) && { allowedBy: 'models' }) }] : []
  })
  if (isPresent(scan, 'web_search_options')) tools.push({ type: 'web_search_options' })
  if (isPresent(scan, 'search_parameters')) tools.push({ type: 'web_search', allowedBy: 'search_parameters' })
  if (isPresent(scan, 'plugins') && hasWebPlugin(scan.value('plugins')))
    tools.push({ type: 'web_search', allowedBy: 'plugins' })
  return tools.length > 0 ? { tools } : undefined
}

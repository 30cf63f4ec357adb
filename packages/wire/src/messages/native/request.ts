import {
  booleanCheck,
  type Check,
  checkEachMessage,
  checkEachObject,
  checkMembers,
  createSecretCheck,
  createValueCheck,
  schemaImplies,
  integerCheck,
  isNumber,
  isText,
  isTexts,
  type JsonSchema,
  kindName,
  modelNameCheck,
  objectCheck,
  outputTokensOrNoneCheck,
  refuseField,
  requestSchema,
  textCheck,
  withSchema,
} from '../../field-check.ts'
import { type OfferedTool, type ProviderTools, statedMaximum, toolsExceptTypes } from '../../tool-use.ts'
import { asRecord } from '../../json/record.ts'
import { carriesModel } from '../../model-tools.ts'
import type { Member, ScannedObject } from '../../json/scanned-object.ts'
import {
  BLOCK_RULES,
  blocksSchema,
  checkContent,
  checkField,
  checkTextBlocks,
  type FieldRule,
  fieldSchema,
} from './blocks.ts'
import type { PromptBounds } from '../../prompt-tokens.ts'
import { promptBounds } from './prompt.ts'
import { knownNames, requestNames } from '../../request-names.ts'
import { MESSAGES_REQUEST } from '../shape.ts'

/** The fields of a messages request that the gateway reads. All other fields are forwarded unchanged. */
export interface MessagesRequest extends PromptBounds {
  readonly model: string
  readonly stream: boolean
  /** Maximum number of output tokens. With 0, the request only fills the provider's prompt cache. */
  readonly maxTokens: number
  /** Whether the request sets thinking to `enabled` or `adaptive`. */
  readonly thinking: boolean
  /** Tools of the request that the provider runs; absent if there are none. */
  readonly providerTools?: ProviderTools
}

const typed = createSecretCheck(
  'an object with a type',
  withSchema({ type: 'object', required: ['type'], properties: { type: isText.schema } }, (value: unknown) =>
    isText(asRecord(value)?.['type']),
  ),
)

const STRING: FieldRule = { expected: 'a string', kinds: ['string'] }
const STRING_IF_ANY: FieldRule = { ...STRING, optional: true }
const OBJECT: FieldRule = { expected: 'an object', kinds: ['object'] }
const FLAG_IF_ANY: FieldRule = { expected: 'true or false', kinds: ['true', 'false'], optional: true }
const CONTENT = { expected: 'a string or an array of blocks', kinds: ['string', 'array'] } as const

const message: JsonSchema = {
  type: 'object',
  required: ['role', 'content'],
  properties: { role: isText.schema, content: { anyOf: [isText.schema, blocksSchema()] } },
}

const system: JsonSchema = {
  anyOf: [isText.schema, blocksSchema(new Map([...BLOCK_RULES].filter(([type]) => type === 'text')))],
}

const tool: JsonSchema = {
  type: 'object',
  properties: {
    type: fieldSchema(STRING_IF_ANY),
    name: fieldSchema(STRING_IF_ANY),
    description: fieldSchema(STRING_IF_ANY),
    input_schema: fieldSchema({ ...OBJECT, optional: true }),
  },
  ...schemaImplies(
    { properties: { type: { enum: ['custom', null] } } },
    {
      required: ['name', 'input_schema'],
      properties: { name: fieldSchema(STRING), input_schema: fieldSchema(OBJECT) },
    },
  ),
}

const toolChoice: JsonSchema = {
  ...typed.schema,
  properties: {
    type: isText.schema,
    disable_parallel_tool_use: fieldSchema(FLAG_IF_ANY),
    name: fieldSchema(STRING_IF_ANY),
  },
  ...schemaImplies(
    { properties: { type: { const: 'tool' } } },
    { required: ['name'], properties: { name: fieldSchema(STRING) } },
  ),
}

const thinking: JsonSchema = {
  ...typed.schema,
  properties: { type: isText.schema, budget_tokens: { type: ['integer', 'null'], minimum: 1 } },
}

/**
 * Checks for the table in `docs/api.md: Messages`, one for each row. Unknown values of enumerations are
 * accepted, because a provider may have further values.
 */
const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelNameCheck],
  ['max_tokens', outputTokensOrNoneCheck],
  ['messages', withSchema({ type: 'array', minItems: 1, items: message }, checkMessages)],
  ['system', withSchema(system, checkSystem)],
  ['stream', booleanCheck],
  ['temperature', createValueCheck('a number from 0 to 1', isNumber(0, 1))],
  [
    'top_p',
    createValueCheck(
      'a number',
      withSchema({ type: 'number' }, (value: unknown) => typeof value === 'number'),
    ),
  ],
  ['top_k', integerCheck],
  ['stop_sequences', createSecretCheck('an array of strings', isTexts)],
  ['tools', withSchema({ type: 'array', items: tool }, checkTools)],
  ['tool_choice', withSchema(toolChoice, checkToolChoice)],
  ['thinking', withSchema(thinking, checkThinking)],
  ['metadata', objectCheck],
  ['cache_control', typed],
  ['service_tier', textCheck],
  ['inference_geo', textCheck],
  ['speed', textCheck],
])

const REQUIRED = ['model', 'max_tokens', 'messages'] as const

/** Builds the JSON Schema of a valid messages request, for the description of the API. */
export function messagesRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHECKS)
}

/** Types of thinking with which sampling fields have no effect. */
export const ACTIVE_THINKING: ReadonlySet<unknown> = new Set(['enabled', 'adaptive'])

/**
 * Applies the checks for the table in `docs/api.md: Messages`, and checks the content blocks that it names.
 * Null in an optional field counts as absent; fields outside the table and other blocks are not checked.
 * Throws `invalid_request` with the field, and the expected and the actual value. For a field that can
 * contain a prompt, the error states only the kind of the value.
 */
export function readMessagesRequest(scan: ScannedObject): MessagesRequest {
  checkMembers(scan, REQUIRED, CHECKS)
  const offered = offeredTools(scan)
  return {
    model: scan.value('model') as string,
    stream: scan.value('stream') === true,
    maxTokens: scan.value('max_tokens') as number,
    thinking: ACTIVE_THINKING.has(asRecord(scan.value('thinking'))?.['type']),
    ...(offered && { providerTools: offered }),
    ...promptBounds(scan),
  }
}

function checkMessages(scan: ScannedObject, member: Member): void {
  checkEachMessage(scan, member, (message, pathOf) => {
    const path = pathOf()
    checkField(scan, message, path, 'role', STRING)
    const content = checkField(scan, message, path, 'content', CONTENT)
    checkContent(scan, content, `${path}.content`)
  })
}

function checkSystem(scan: ScannedObject, { node }: Member): void {
  if (scan.kindOf(node) === 'string') return
  if (scan.kindOf(node) !== 'array')
    refuseField('system', 'a string or an array of blocks', kindName(scan, node))
  checkTextBlocks(scan, node, 'system')
}

/**
 * Checks tools. Tools that the client runs must have a name and a schema. Tools with other types are run by
 * the provider.
 */
function checkTools(scan: ScannedObject, { node }: Member): void {
  checkEachObject(scan, node, 'tools', (tool, pathOf) => {
    const path = pathOf()
    const type = checkField(scan, tool, path, 'type', STRING_IF_ANY)
    const isCallers = type === undefined || scan.parse(type) === 'custom'
    checkField(scan, tool, path, 'name', { ...STRING, optional: !isCallers })
    checkField(scan, tool, path, 'description', STRING_IF_ANY)
    checkField(scan, tool, path, 'input_schema', { ...OBJECT, optional: !isCallers })
  })
}

function checkToolChoice(scan: ScannedObject, member: Member): void {
  typed(scan, member)
  const { node } = member
  checkField(scan, node, 'tool_choice', 'disable_parallel_tool_use', FLAG_IF_ANY)
  const isTool = asRecord(scan.value('tool_choice'))?.['type'] === 'tool'
  checkField(scan, node, 'tool_choice', 'name', { ...STRING, optional: !isTool })
}

function checkThinking(scan: ScannedObject, member: Member): void {
  typed(scan, member)
  const { budget_tokens: budget } = asRecord(scan.value('thinking')) ?? {}
  const node = scan.memberOf(member.node, 'budget_tokens')
  // Anthropic requires a budget with `enabled`, other providers of the protocol do not, so each judges for itself
  // (https://api-docs.deepseek.com/guides/anthropic_api: `budget_tokens` is ignored).
  if (node === undefined || budget === null) return
  if (!Number.isInteger(budget) || (budget as number) < 1)
    refuseField('thinking.budget_tokens', 'a positive integer', kindName(scan, node))
}

/** Types of tools that the client runs. Most of these tools have no `type`. */
const OF_CLIENTS: ReadonlySet<unknown> = new Set(['custom'])

function offeredTools(scan: ScannedObject): ProviderTools | undefined {
  const tools = toolsExceptTypes(scan, OF_CLIENTS).flatMap(offered)
  const servers = scan.span('mcp_servers')
  if (servers && scan.kindOf(servers.node) === 'array' && servers.count > 0)
    tools.push({ type: 'mcp_toolset' })
  return tools.length > 0 ? { tools } : undefined
}

function advisorOf({ type, model, max_tokens: most }: Readonly<Record<string, unknown>>) {
  if (typeof model !== 'string' || !String(type).startsWith('advisor_')) return undefined
  return { advisor: { model, maxTokens: statedMaximum(most) } }
}

/**
 * Factor by which the results of a use may exceed `max_content_tokens`, which the provider calls approximate.
 */
const CONTENT_TOLERANCE = 1.25

function offered(tool: Readonly<Record<string, unknown>>): OfferedTool[] {
  const { type } = tool
  if (typeof type !== 'string' || type === 'custom') return []
  const maxUses = statedMaximum(tool['max_uses'])
  const content = type.startsWith('web_fetch') ? statedMaximum(tool['max_content_tokens']) : undefined
  return [
    {
      type,
      ...(carriesModel(tool) && { allowedBy: 'models' as const, ...advisorOf(tool) }),
      ...(maxUses !== undefined && { maxUses }),
      ...(content !== undefined && { maxResultTokens: Math.ceil(content * CONTENT_TOLERANCE) }),
    },
  ]
}

/** Names of the fields of messages requests, which must be spelled exactly. */
export const messagesFieldNames = requestNames(
  [...CHECKS.keys(), 'container', 'mcp_servers', 'context_management'],
  MESSAGES_REQUEST,
  {
    below: {
      'Request.fallbacks': knownNames('model'),
    },
  },
)

/**
 * Checks for requests to count tokens. All other fields are checked by the gateway's own token counter or by
 * the upstream.
 */
const COUNT_CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  [
    'model',
    createValueCheck(
      'a name',
      withSchema(
        { type: 'string', minLength: 1 },
        (value: unknown) => typeof value === 'string' && value !== '',
      ),
    ),
  ],
  ['messages', withSchema({ type: 'array' }, checkMessageList)],
])

const COUNT_REQUIRED = ['model', 'messages'] as const

/** Builds the JSON Schema of a valid request to count tokens, for the description of the API. */
export function countRequestSchema(): JsonSchema {
  return requestSchema(COUNT_REQUIRED, COUNT_CHECKS)
}

/**
 * Returns the model for which a request wants tokens to be counted. Throws `invalid_request` if the model or
 * the messages are missing.
 */
export function countedModel(scan: ScannedObject): string {
  checkMembers(scan, COUNT_REQUIRED, COUNT_CHECKS)
  return scan.value('model') as string
}

/** Checks messages without parsing them. */
function checkMessageList(scan: ScannedObject, { node }: Member): void {
  if (scan.kindOf(node) !== 'array') refuseField('messages', 'an array', kindName(scan, node))
}

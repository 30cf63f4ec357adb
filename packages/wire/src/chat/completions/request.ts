import {
  areNumbers,
  booleanCheck,
  type Check,
  checkMembers,
  createSecretCheck,
  checkTokenIds,
  createValueCheck,
  integerCheck,
  isInteger,
  isNumber,
  isText,
  type JsonSchema,
  kindName,
  modelNameCheck,
  maximumOrUnlimitedFrom,
  NO_MAXIMUM,
  refuseField,
  requestSchema,
  tokenIdsSchema,
  withSchema,
} from '../../field-check.ts'
import { asRecord } from '../../json/record.ts'
import type { Member, ScannedObject } from '../../json/scanned-object.ts'
import { FEATURE_TOKENS, MESSAGE_TOKENS } from '../../prompt-tokens.ts'
import { type ChatRequest, checkStop, streamOptionsCheck } from '../native/request.ts'

/** A checked completions request, with the fields of a chat request. */
export interface CompletionRequest extends ChatRequest {
  /**
   * Number of completions that are generated, though not all are returned: the number of prompts times the
   * larger of `n` and `best_of`.
   */
  readonly choices: number
}

const secretText = createSecretCheck('a string', isText)
const penalty = createValueCheck('a number from -2 to 2', isNumber(-2, 2))
const count = createValueCheck('an integer from 1 to 128', isInteger(1, 128))

const promptSchema: JsonSchema = {
  anyOf: [
    { type: 'string' },
    tokenIdsSchema,
    { type: 'array', minItems: 1, items: { anyOf: [{ type: 'string' }, tokenIdsSchema] } },
  ],
}

/** Checks for the table in `docs/api.md: Completions`, one for each row. */
export const COMPLETION_FIELD_CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelNameCheck],
  ['prompt', withSchema(promptSchema, checkPrompt)],
  ['max_tokens', maximumOrUnlimitedFrom(0)],
  ['n', count],
  ['best_of', count],
  ['stream', booleanCheck],
  ['stream_options', streamOptionsCheck],
  ['echo', booleanCheck],
  ['suffix', secretText],
  ['logprobs', createValueCheck('an integer from 0 to 20', isInteger(0, 20))],
  ['stop', checkStop],
  ['temperature', createValueCheck('a number from 0 to 2', isNumber(0, 2))],
  ['top_p', createValueCheck('a number from 0 to 1', isNumber(0, 1))],
  ['presence_penalty', penalty],
  ['frequency_penalty', penalty],
  ['seed', integerCheck],
  ['user', secretText],
])

const REQUIRED = ['model', 'prompt'] as const

/** Builds the JSON Schema of valid completions requests. */
export function completionRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, COMPLETION_FIELD_CHECKS)
}

/**
 * Applies the checks for the table in `docs/api.md: Completions`. Null in an optional field counts as absent;
 * fields outside the table are not checked. Throws `invalid_request` with the field; the error never contains
 * the client's text.
 */
export function readCompletionRequest(scan: ScannedObject): CompletionRequest {
  checkMembers(scan, REQUIRED, COMPLETION_FIELD_CHECKS)
  const number = (field: string): number | undefined =>
    (scan.value(field) as number | null | undefined) ?? undefined
  const n = number('n') ?? 1
  const maximum = number('max_tokens')
  return {
    model: scan.value('model') as string,
    stream: scan.value('stream') === true,
    includeUsage: asRecord(scan.value('stream_options'))?.['include_usage'] === true,
    n,
    choices: Math.max(n, number('best_of') ?? 1) * promptsIn(scan),
    maxTokens: maximum === NO_MAXIMUM ? undefined : maximum,
    promptBound: completionPromptBound(scan),
    hasMedia: false,
    namesPrompt: false,
  }
}

function promptsIn(scan: ScannedObject): number {
  const prompt = scan.span('prompt')
  if (!prompt || scan.kindOf(prompt.node) !== 'array') return 1
  return areNumbers(scan, scan.elements(prompt.node)) ? 1 : prompt.count
}

const EXPECTED = 'a string, token ids, or a non-empty array of these'

function checkPrompt(scan: ScannedObject, { node, count }: Member): void {
  const kind = scan.kindOf(node)
  if (kind === 'string') return
  if (kind !== 'array') refuseField('prompt', EXPECTED, kindName(scan, node))
  if (count === 0) refuseField('prompt', EXPECTED, 'an empty array')
  const elements = scan.elements(node)
  if (areNumbers(scan, elements)) return checkTokenIds(scan, elements, 'prompt')
  for (const [index, element] of elements.entries()) {
    const path = `prompt[${index}]`
    const elementKind = scan.kindOf(element)
    if (elementKind === 'string') continue
    if (elementKind !== 'array') refuseField(path, 'a string or token ids', kindName(scan, element))
    checkTokenIds(scan, scan.elements(element), path)
  }
}

/** Upper bound on the tokens of a checked request. No tokenizer is needed: a token has at least one byte. */
function completionPromptBound(scan: ScannedObject): number {
  const prompt = scan.span('prompt')
  const suffix = scan.span('suffix')
  const promptBytes = prompt ? prompt.end - prompt.start + prompt.count * MESSAGE_TOKENS : 0
  const hasSuffix = suffix !== undefined && scan.kindOf(suffix.node) === 'string'
  return promptBytes + MESSAGE_TOKENS + (hasSuffix ? suffix.end - suffix.start + FEATURE_TOKENS : 0)
}

import {
  areNumbers,
  type Check,
  checkMembers,
  checkTokenIds,
  createValueCheck,
  isInteger,
  isPresent,
  type JsonSchema,
  kindName,
  modelNameCheck,
  refuseField,
  requestSchema,
  textCheck,
  tokenIdsSchema,
  withSchema,
} from '../field-check.ts'
import type { ScanLimits } from '../json/json-scan.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { promptRules } from '../prompt-text.ts'
import { EMBEDDINGS_REQUEST } from './shape.ts'
import { FEATURE_TOKENS, IMAGE_TOKENS, MESSAGE_TOKENS } from '../prompt-tokens.ts'
import { requestNames } from '../request-names.ts'

/** Format of the vectors in a response; undefined if the client requested a format that is not converted. */
export type VectorForm = 'numbers' | 'base64' | undefined

/** The fields of an embeddings request that the gateway reads. All other fields are forwarded unchanged. */
export interface EmbeddingsRequest {
  readonly model: string
  /** Maximum number of tokens that the upstream can count for this request. */
  readonly promptBound: number
  /** Maximum number of tokens of each input. */
  readonly inputBounds: readonly number[]
  readonly form: VectorForm
}

/** Maximum number of inputs in a request, the same as at providers. */
const MAX_INPUTS = 2048

const nonEmpty: JsonSchema = { type: 'string', minLength: 1 }
const inputSchema: JsonSchema = {
  anyOf: [
    nonEmpty,
    tokenIdsSchema,
    {
      type: 'array',
      minItems: 1,
      maxItems: MAX_INPUTS,
      items: { anyOf: [nonEmpty, tokenIdsSchema, { type: 'object' }] },
    },
  ],
}

/** Checks for the table in `docs/api.md: Embeddings`, one for each row. */
const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelNameCheck],
  ['input', withSchema(inputSchema, checkInput)],
  ['encoding_format', textCheck],
  ['dimensions', createValueCheck('an integer of at least 1', isInteger(1, Number.MAX_SAFE_INTEGER))],
])

const REQUIRED = ['model', 'input'] as const

/**
 * Checks each field in the table of `docs/api.md: Embeddings`. Null in an optional field counts as absent;
 * other fields are not checked. Throws `invalid_request` that names the field and never contains text of the
 * client.
 */
export function readEmbeddingsRequest(scan: ScannedObject): EmbeddingsRequest {
  checkMembers(scan, REQUIRED, CHECKS)
  return { model: scan.value('model') as string, ...promptBounds(scan), form: formOf(scan) }
}

/** Builds the JSON Schema of valid embeddings requests. */
export function embeddingsRequestSchema(): JsonSchema {
  return requestSchema(REQUIRED, CHECKS)
}

// Other number formats (`output_dtype` of Voyage and Mistral) are encoded differently, so they are not
// converted.
function formOf(scan: ScannedObject): VectorForm {
  if (isPresent(scan, 'output_dtype') && scan.value('output_dtype') !== 'float') return undefined
  const format = isPresent(scan, 'encoding_format') ? scan.value('encoding_format') : 'float'
  return format === 'base64' ? 'base64' : format === 'float' ? 'numbers' : undefined
}

const EXPECTED = 'a non-empty string, token ids, or a non-empty array of these'

/** Checks the input without parsing it. */
function checkInput(scan: ScannedObject, { node, count }: Member): void {
  const kind = scan.kindOf(node)
  if (kind === 'string') return checkText(scan, node, 'input')
  if (kind !== 'array') refuseField('input', EXPECTED, kindName(scan, node))
  if (count === 0) refuseField('input', EXPECTED, 'an empty array')
  const elements = scan.elements(node)
  if (areNumbers(scan, elements)) return checkTokenIds(scan, elements, 'input')
  if (count > MAX_INPUTS) refuseField('input', `at most ${MAX_INPUTS} inputs`, String(count))
  for (const [index, element] of elements.entries()) checkElement(scan, element, `input[${index}]`)
}

function checkElement(scan: ScannedObject, node: Node, path: string): void {
  const kind = scan.kindOf(node)
  if (kind === 'string') return checkText(scan, node, path)
  // Some providers embed other things than texts: `{"image": …}`.
  if (kind === 'object') return
  const expected = 'a non-empty string or token ids'
  if (kind !== 'array') refuseField(path, expected, kindName(scan, node))
  const ids = scan.elements(node)
  if (ids.length === 0) refuseField(path, expected, 'an empty array')
  checkTokenIds(scan, ids, path)
}

function checkText(scan: ScannedObject, node: Node, path: string): void {
  if (scan.endOf(node) - scan.startOf(node) === '""'.length) refuseField(path, EXPECTED, 'an empty string')
}

/**
 * Maximum number of tokens of a checked request, and of each of its inputs, without a tokenizer: a token has at
 * least one byte, each input has a few tokens of markup, and a task or an instruction may be added.
 */
function promptBounds(scan: ScannedObject): Pick<EmbeddingsRequest, 'promptBound' | 'inputBounds'> {
  const { node, start, end } = scan.span('input') as Member
  const elements = scan.kindOf(node) === 'array' ? scan.elements(node) : []
  // Token ids are one input.
  const inputs = elements.length === 0 || scan.kindOf(elements[0] as Node) === 'number' ? [node] : elements
  const model = String(scan.value('model'))
  const added = (input: Node): number =>
    scan.kindOf(input) === 'object' ? IMAGE_TOKENS.max(0, model) + FEATURE_TOKENS : MESSAGE_TOKENS
  const inputBounds = inputs.map((input) => scan.endOf(input) - scan.startOf(input) + added(input))
  return { promptBound: inputs.reduce((sum, input) => sum + added(input), end - start), inputBounds }
}

/** Limits for parsing a request, which may contain about 300,000 token ids. */
export const EMBEDDINGS_LIMITS: ScanLimits = { depth: 128, nodes: 320_000, members: 1_000 }

/** Names of the fields of embeddings requests, which must be spelled exactly. */
export const embeddingsFieldNames = requestNames([...CHECKS.keys(), 'output_dtype'], EMBEDDINGS_REQUEST)

/** How the prompt of an embeddings request is counted. */
export const EMBEDDINGS_PROMPT_RULES = promptRules(EMBEDDINGS_REQUEST, { turns: 'input', hasTokenIds: true })

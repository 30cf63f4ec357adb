import { errorInAnswer } from '../answer-error.ts'
import {
  type Check,
  checkMembers,
  type JsonSchema,
  kindName,
  modelNameCheck,
  refuseField,
  requestSchema,
  withSchema,
} from '../field-check.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { type FoundMedia, promptRules } from '../prompt-text.ts'
import { MODERATIONS_REQUEST } from './shape.ts'
import { IMAGE_TOKENS, MESSAGE_TOKENS } from '../prompt-tokens.ts'
import { requestNames } from '../request-names.ts'
import { readInclusiveUsage } from '../reported-usage.ts'
import { parseRecord } from '../json/record.ts'
import type { ReplyFacts } from '../reply-facts.ts'
import { promptTokens } from '../usage.ts'

/** The fields of a moderation request that the gateway reads. All other fields are forwarded unchanged. */
export interface ModerationsRequest {
  readonly model: string
  /** Maximum number of tokens that the upstream can count for this request. */
  readonly promptBound: number
}

/** The model that is used if the request names none. */
const DEFAULT_MODEL = 'omni-moderation-latest'

const inputSchema: JsonSchema = {
  anyOf: [{ type: 'string' }, { type: 'array', minItems: 1, items: { type: ['string', 'object'] } }],
}

/** Checks for the table in `docs/api.md: Moderations`, one for each row. */
const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelNameCheck],
  ['input', withSchema(inputSchema, checkInput)],
])

/**
 * Checks each field in the table of `docs/api.md: Moderations`; other fields are not checked. Throws
 * `invalid_request` that names the field and never contains text of the client.
 */
export function readModerationsRequest(scan: ScannedObject): ModerationsRequest {
  checkMembers(scan, ['input'], CHECKS)
  return {
    model: (scan.value('model') as string | null | undefined) ?? DEFAULT_MODEL,
    promptBound: promptBound(scan),
  }
}

/** Builds the JSON Schema of a valid moderation request, for the description of the API. */
export function moderationsRequestSchema(): JsonSchema {
  return requestSchema(['input'], CHECKS)
}

const EXPECTED = 'a string, or a non-empty array of strings or objects'

function checkInput(scan: ScannedObject, { node, count }: Member): void {
  const kind = scan.kindOf(node)
  if (kind === 'string') return
  if (kind !== 'array') refuseField('input', EXPECTED, kindName(scan, node))
  if (count === 0) refuseField('input', EXPECTED, 'an empty array')
  for (const [index, element] of scan.elements(node).entries()) {
    const isInput = ['string', 'object'].includes(scan.kindOf(element))
    if (!isInput) refuseField(`input[${index}]`, 'a string or an object', kindName(scan, element))
  }
}

/**
 * Maximum number of tokens of a checked request. No tokenizer is needed: it is one token per byte, and the
 * maximum for each image.
 */
function promptBound(scan: ScannedObject): number {
  const input = scan.span('input')
  if (!input) return 0
  const { node, start, end, count } = input
  const isList = scan.kindOf(node) === 'array'
  const elements = isList ? scan.elements(node) : []
  const images = elements.filter((element) => isImage(scan, element)).length
  return end - start + (count + 1) * MESSAGE_TOKENS + images * IMAGE_TOKENS.max(0, '')
}

function isImage(scan: ScannedObject, node: number): boolean {
  return scan.kindOf(node) === 'object' && scan.memberOf(node, 'image_url') !== undefined
}

/** How the prompt of a moderation request is counted. */
export const MODERATIONS_PROMPT_RULES = promptRules(MODERATIONS_REQUEST, {
  media: { Part: findMedia },
  turns: 'input',
})

/** Finds the image of a part. */
function findMedia(scan: ScannedObject, part: Node): FoundMedia | undefined {
  const held = scan.memberOf(part, 'image_url')
  if (held === undefined) return undefined
  const url = scan.kindOf(held) === 'object' ? scan.memberOf(held, 'url') : held
  const data = url !== undefined && scan.kindOf(url) === 'string' ? url : undefined
  return { tokens: IMAGE_TOKENS, data }
}

/** Names of the fields of moderation requests, which must be spelled exactly. */
export const moderationFieldNames = requestNames(CHECKS.keys(), MODERATIONS_REQUEST)

/**
 * Reads validity, error and usage of a response; never throws. A response is valid if it contains a list of
 * results.
 */
export function readModerationsReply(bytes: Buffer): ReplyFacts {
  const reply = parseRecord(bytes.toString()) ?? {}
  const error = errorInAnswer(reply, Array.isArray(reply['results']))
  const usage = readInclusiveUsage(reply['usage'])
  return {
    valid: Array.isArray(reply['results']) && !error,
    // Some servers report zeros, though every request has a prompt.
    usage: !usage || usage.outputIsUnknown || promptTokens(usage) === 0 ? undefined : usage,
    error,
    text: () => '',
  }
}

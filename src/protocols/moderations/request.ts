import { type Check, checkMembers, kindName, modelName, refuse, requestSchema } from '../field-check.ts'
import type { Member, ScannedObject } from '../json/scanned-object.ts'
import { type JsonSchema, withSchema } from '../with-schema.ts'
import { promptBound } from './prompt.ts'

/** Fields of a moderation request that the gateway reads; all others pass as they came. */
export interface ModerationsRequest {
  readonly model: string
  /** Upper bound on the tokens that the upstream can count. */
  readonly promptBound: number
}

/** Model where the request names none, as the protocol has it. */
const DEFAULT_MODEL = 'omni-moderation-latest'

const inputSchema: JsonSchema = {
  anyOf: [{ type: 'string' }, { type: 'array', minItems: 1, items: { type: ['string', 'object'] } }],
}

/** Table of `docs/api.md: Moderations`, row for row. */
export const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelName],
  ['input', withSchema(inputSchema, checkInput)],
])

/**
 * Checks every row of the table in `docs/api.md: Moderations`; fields outside it pass. Throws
 * `invalid_request` naming the field, never a text of the client's.
 */
export function readModerationsRequest(scan: ScannedObject): ModerationsRequest {
  checkMembers(scan, ['input'], CHECKS)
  return {
    model: (scan.value('model') as string | null | undefined) ?? DEFAULT_MODEL,
    promptBound: promptBound(scan),
  }
}

/** Builds the JSON Schema of requests that `readModerationsRequest` accepts. */
export function moderationsRequestSchema(): JsonSchema {
  return requestSchema(['input'], CHECKS)
}

const EXPECTED = 'a string, or a non-empty array of strings or objects'

function checkInput(scan: ScannedObject, { node, count }: Member): void {
  const kind = scan.kindOf(node)
  if (kind === 'string') return
  if (kind !== 'array') refuse('input', EXPECTED, kindName(scan, node))
  if (count === 0) refuse('input', EXPECTED, 'an empty array')
  for (const [index, element] of scan.elements(node).entries()) {
    const isInput = ['string', 'object'].includes(scan.kindOf(element))
    if (!isInput) refuse(`input[${index}]`, 'a string or an object', kindName(scan, element))
  }
}

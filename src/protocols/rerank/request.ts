import { GatewayError } from '../../errors.ts'
import { withSchema, type JsonSchema } from '../with-schema.ts'
import {
  type Check,
  checkMembers,
  boolean,
  integer,
  isInteger,
  isPresent,
  isText,
  kindName,
  modelName,
  checkValue,
  refuse,
  requestSchema,
  checkSecret,
} from '../field-check.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { textNode } from './document.ts'
import { promptBound } from './prompt.ts'

/** What the gateway reads in a rerank request; everything else passes as it came. */
export interface RerankRequest {
  readonly model: string
  /** Where the documents lie, in their order. */
  readonly documents: readonly Node[]
  /** The most results that the caller wants; undefined = as many as the upstream gives. */
  readonly topN: number | undefined
  readonly returnDocuments: boolean
  /** At least as many tokens as the upstream can count. */
  readonly promptBound: number
}

/** The table in `docs/api.md: Rerank`, row for row. */
const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelName],
  ['query', checkSecret('a string', isText)],
  ['documents', documents()],
  ['top_n', checkValue('an integer of at least 1', isInteger(1, Number.MAX_SAFE_INTEGER))],
  ['return_documents', boolean],
  ['max_chunk_per_doc', integer],
  ['overlap_tokens', integer],
])

const REQUIRED = ['query', 'documents'] as const

/**
 * Checks the types and ranges of every row of the table in `docs/api.md: Rerank`; null in an optional field
 * is absence, fields outside the table pass. Throws `model_not_specified` before anything else where no model
 * is named, else `invalid_request` naming the field, of which one that can hold a caller's text shows its
 * kind alone.
 */
export function readRerankRequest(scan: ScannedObject): RerankRequest {
  if (!isPresent(scan, 'model') || scan.value('model') === '') {
    throw new GatewayError(
      'model_not_specified',
      "the model name is not specified: expected it in 'model', as a non-empty string",
    )
  }
  checkMembers(scan, REQUIRED, CHECKS)
  return {
    model: scan.value('model') as string,
    documents: scan.elements((scan.span('documents') as Member).node),
    topN: (scan.value('top_n') as number | null | undefined) ?? undefined,
    returnDocuments: scan.value('return_documents') === true,
    promptBound: promptBound(scan),
  }
}

/** A document is a string, or an object whose `text` is one. */
function documents(): Check {
  const text: JsonSchema = { type: 'string' }
  const withText: JsonSchema = { type: 'object', required: ['text'], properties: { text } }
  return withSchema({ type: 'array', minItems: 1, items: { anyOf: [text, withText] } }, checkDocuments)
}

/** The schema of what `readRerankRequest` takes, by the same table. */
export function rerankRequestSchema(): JsonSchema {
  return requestSchema(['model', ...REQUIRED], CHECKS)
}

/** They are looked at where they lie: long documents are not parsed for the sake of their kind. */
function checkDocuments(scan: ScannedObject, { node, count }: Member): void {
  const expected = 'a non-empty array of strings or objects with text'
  if (scan.kindOf(node) !== 'array') refuse('documents', expected, kindName(scan, node))
  if (count === 0) refuse('documents', expected, 'an empty array')
  for (const [index, document] of scan.elements(node).entries()) {
    if (textNode(scan, document) !== undefined) continue
    const isObject = scan.kindOf(document) === 'object'
    const came = isObject ? 'an object without it' : kindName(scan, document)
    refuse(`documents[${index}]`, "a string or an object whose 'text' is a string", came)
  }
}

import { WireError } from '../wire-error.ts'
import {
  boolean,
  type Check,
  checkMembers,
  checkSecret,
  checkValue,
  integer,
  isInteger,
  isPresent,
  isText,
  kindName,
  modelName,
  refuse,
  requestSchema,
} from '../field-check.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import type { PromptLevels } from '../prompt-levels.ts'
import { FEATURE_TOKENS, MESSAGE_TOKENS } from '../prompt-tokens.ts'
import { names, requestNames } from '../request-names.ts'
import { type JsonSchema, withSchema } from '../with-schema.ts'
import { textNode } from './document.ts'

/** Fields of a rerank request that the gateway reads; all others pass as they came. */
export interface RerankRequest {
  readonly model: string
  /** Documents, in order. */
  readonly documents: readonly Node[]
  /** Maximum number of results that the client wants; undefined for as many as the upstream returns. */
  readonly topN: number | undefined
  readonly returnDocuments: boolean
  /** Upper bound on the tokens that the upstream can count. */
  readonly promptBound: number
}

/** Table of `docs/api.md: Rerank`, row for row. */
export const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
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
 * Checks every row of the table in `docs/api.md: Rerank`; null in an optional field counts as absent, fields
 * outside the table pass. Throws `model_not_specified` first if no model is named, otherwise
 * `invalid_request` that names the field. For a field that can contain a client's text the error shows only
 * the kind of value.
 */
export function readRerankRequest(scan: ScannedObject): RerankRequest {
  if (!isPresent(scan, 'model') || scan.value('model') === '') {
    throw new WireError(
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

/** Checks that documents are strings or objects with a string `text`. */
function documents(): Check {
  const text: JsonSchema = { type: 'string' }
  const withText: JsonSchema = { type: 'object', required: ['text'], properties: { text } }
  return withSchema({ type: 'array', minItems: 1, items: { anyOf: [text, withText] } }, checkDocuments)
}

/** Builds the JSON Schema of requests that `readRerankRequest` accepts. */
export function rerankRequestSchema(): JsonSchema {
  return requestSchema(['model', ...REQUIRED], CHECKS)
}

/** Checks documents in place, without parsing them. */
function checkDocuments(scan: ScannedObject, { node, count }: Member): void {
  const expected = 'a non-empty array of strings or objects with text'
  if (scan.kindOf(node) !== 'array') refuse('documents', expected, kindName(scan, node))
  if (count === 0) refuse('documents', expected, 'an empty array')
  for (const [index, document] of scan.elements(node).entries()) {
    if (textNode(scan, document) !== undefined) continue
    const isObject = scan.kindOf(document) === 'object'
    const actual = isObject ? 'an object without it' : kindName(scan, document)
    refuse(`documents[${index}]`, "a string or an object whose 'text' is a string", actual)
  }
}

/**
 * Upper bound on the tokens of a checked request, without a tokenizer: a token has at least one byte. A model
 * reads the query with each document; some providers count the query as often, and the markup around each
 * pair.
 */
function promptBound(scan: ScannedObject): number {
  const documents = scan.span('documents')?.count ?? 0
  const query = scan.span('query')
  const queryBytes = query ? query.end - query.start : 0
  return scan.bytes.length + documents * (queryBytes + MESSAGE_TOKENS) + FEATURE_TOKENS
}

/** The prompt of a rerank request. */
export const RERANK_PROMPT = {
  levels: {
    request: {
      notPrompt: {
        model: 'service',
        top_n: 'service',
        return_documents: 'service',
        max_chunks_per_doc: 'service',
        max_tokens_per_doc: 'service',
        rank_fields: 'service',
      },
      read: { query: 'text', documents: 'document' },
    },
    document: { notPrompt: {}, read: { text: 'text' } },
  },
  turns: 'documents',
} as const satisfies PromptLevels

/** Names of the fields of rerank requests. */
export const rerankNames = requestNames(
  [...CHECKS.keys(), 'max_chunks_per_doc', 'max_tokens_per_doc', 'rank_fields'],
  { documents: names('text') },
)

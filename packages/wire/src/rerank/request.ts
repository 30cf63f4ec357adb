import { WireError } from '../wire-error.ts'
import {
  booleanCheck,
  type Check,
  checkMembers,
  createSecretCheck,
  createValueCheck,
  integerCheck,
  isInteger,
  isPresent,
  isText,
  type JsonSchema,
  kindName,
  modelNameCheck,
  refuseField,
  requestSchema,
  withSchema,
} from '../field-check.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { promptRules } from '../prompt-text.ts'
import { RERANK_REQUEST } from './shape.ts'
import { FEATURE_TOKENS, MESSAGE_TOKENS } from '../prompt-tokens.ts'
import { requestNames } from '../request-names.ts'
import type { UpstreamSettings } from '../upstream-settings.ts'
import { type EditedRequest, editRequest } from '../edit-request.ts'

/** The fields of a rerank request that the gateway reads. All other fields are forwarded unchanged. */
export interface RerankRequest {
  readonly model: string
  /** Documents, in order. */
  readonly documents: readonly Node[]
  /** Maximum number of results for the client; undefined for as many as the upstream returns. */
  readonly topN: number | undefined
  readonly returnDocuments: boolean
  /** Maximum number of tokens that the upstream can count for this request. */
  readonly promptBound: number
}

/** Checks for the fields in the table of `docs/api.md: Rerank`, one for each row. */
const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['model', modelNameCheck],
  ['query', createSecretCheck('a string', isText)],
  ['documents', documents()],
  ['top_n', createValueCheck('an integer of at least 1', isInteger(1, Number.MAX_SAFE_INTEGER))],
  ['return_documents', booleanCheck],
  ['max_chunk_per_doc', integerCheck],
  ['overlap_tokens', integerCheck],
])

const REQUIRED = ['query', 'documents'] as const

/**
 * Checks each field in the table of `docs/api.md: Rerank`. Null in an optional field counts as absent; other
 * fields are not checked. Throws `model_not_specified` if no model is named, otherwise `invalid_request` that
 * names the field. If the field may contain a client's text, the error states only the type of the value.
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

/** Builds the JSON Schema of a valid rerank request, for the description of the API. */
export function rerankRequestSchema(): JsonSchema {
  return requestSchema(['model', ...REQUIRED], CHECKS)
}

/** Checks the documents without parsing them. */
function checkDocuments(scan: ScannedObject, { node, count }: Member): void {
  const expected = 'a non-empty array of strings or objects with text'
  if (scan.kindOf(node) !== 'array') refuseField('documents', expected, kindName(scan, node))
  if (count === 0) refuseField('documents', expected, 'an empty array')
  for (const [index, document] of scan.elements(node).entries()) {
    if (documentTextNode(scan, document) !== undefined) continue
    const isObject = scan.kindOf(document) === 'object'
    const actual = isObject ? 'an object without it' : kindName(scan, document)
    refuseField(`documents[${index}]`, "a string or an object whose 'text' is a string", actual)
  }
}

/**
 * Maximum number of tokens of a checked request. No tokenizer is needed, because a token has at least one
 * byte. The query is counted once per document, because a model reads it together with each document, and
 * some providers count it and the markup around each pair.
 */
function promptBound(scan: ScannedObject): number {
  const documents = scan.span('documents')?.count ?? 0
  const query = scan.span('query')
  const queryBytes = query ? query.end - query.start : 0
  return scan.bytes.length + documents * (queryBytes + MESSAGE_TOKENS) + FEATURE_TOKENS
}

/** How the prompt of a rerank request is counted. */
export const RERANK_PROMPT_RULES = promptRules(RERANK_REQUEST, { turns: 'documents' })

/** Names of the fields of rerank requests, which must be spelled exactly. */
export const rerankFieldNames = requestNames(CHECKS.keys(), RERANK_REQUEST)

/** Finds the text of a document, which is the document itself or its `text`; undefined if it has none. */
export function documentTextNode(scan: ScannedObject, document: Node): Node | undefined {
  const kind = scan.kindOf(document)
  if (kind === 'string') return document
  const text = kind === 'object' ? scan.memberOf(document, 'text') : undefined
  return text !== undefined && scan.kindOf(text) === 'string' ? text : undefined
}

/** Returns the bytes of one JSON value. */
export function bytesOfValue(scan: ScannedObject, node: Node): Buffer {
  return scan.bytes.subarray(scan.startOf(node), scan.endOf(node))
}

/** A rerank request as it is sent to a channel. */
export interface AdaptedRerankRequest extends EditedRequest {
  /** The model's name at the upstream. */
  readonly upstreamModel: string
}

/** Matches addresses of channels that use version 2 of the protocol. */
const VERSION_2 = /\/v2$/

/** Request fields of version 1 for which version 2 of the protocol has no field with the same meaning. */
const NOT_IN_VERSION_2 = ['max_chunk_per_doc', 'max_chunks_per_doc', 'overlap_tokens'] as const

/**
 * Changes the request for a channel: maps the model's name, and renames fields for the upstream's version of
 * the protocol. Version 1 limits chunks by `max_chunks_per_doc`, which is added if the client sent only
 * `max_chunk_per_doc`. Version 2 accepts documents only as texts and refuses unknown fields; it returns no
 * documents, so the gateway adds them to the response. In pass-through mode only the model's name is changed.
 * `passThrough` switches this mode on for all channels; a channel can also have it on its own.
 */
export function adaptRerankRequest(
  scan: ScannedObject,
  request: RerankRequest,
  channel: UpstreamSettings,
  passThrough: boolean,
): AdaptedRerankRequest {
  const remove: string[] = []
  const replace = new Map<string, string>()
  const upstreamModel = channel.model_mapping.get(request.model) ?? request.model
  if (upstreamModel !== scan.value('model')) replace.set('model', JSON.stringify(upstreamModel))
  const isOpen = passThrough || channel.pass_through
  if (!isOpen) {
    if (VERSION_2.test(channel.base_url)) {
      const texts = documentTexts(scan, request)
      if (texts !== undefined) replace.set('documents', texts)
      remove.push('return_documents', ...NOT_IN_VERSION_2)
    } else if (isPresent(scan, 'max_chunk_per_doc') && !scan.has('max_chunks_per_doc')) {
      replace.set('max_chunks_per_doc', String(scan.value('max_chunk_per_doc')))
    }
  }
  const { body, dropped } = editRequest(scan, channel, isOpen, { remove, replace })
  const unsupported = NOT_IN_VERSION_2.filter((field) => remove.includes(field) && isPresent(scan, field))
  return { body, upstreamModel, dropped: [...unsupported, ...dropped] }
}

/** Returns the documents as a JSON array of texts; undefined if all of them are texts already. */
function documentTexts(scan: ScannedObject, { documents }: RerankRequest): string | undefined {
  if (documents.every((document) => scan.kindOf(document) === 'string')) return undefined
  return `[${documents.map((document) => bytesOfValue(scan, documentTextNode(scan, document) ?? document).toString()).join(',')}]`
}

/**
 * Cohere's rules: a document together with the query is divided into chunks of this many tokens, and this
 * many chunks are one search unit.
 */
const CHUNK_TOKENS = 500
const UNIT_CHUNKS = 100

/**
 * Maximum number of search units of a checked request. No tokenizer is needed, because a token has at least
 * one byte.
 */
export function searchUnitBound(scan: ScannedObject): number {
  const { query, documents } = partsOf(scan)
  return unitsOf(documents.map((document) => query + lengthOf(scan, document)))
}

/**
 * Number of search units of a checked request. `tokens` is the total number of tokens of query and documents.
 * They are distributed over the texts in proportion to the bytes, so that the tokens of each text need not be
 * counted.
 */
export function searchUnits(scan: ScannedObject, tokens: number): number {
  const { query, documents } = partsOf(scan)
  const lengths = documents.map((document) => lengthOf(scan, documentTextNode(scan, document) ?? document))
  const bytes = lengths.reduce((sum, length) => sum + length, query)
  // A request whose texts are all empty has no bytes.
  return unitsOf(lengths.map((length) => ((query + length) * tokens) / Math.max(1, bytes)))
}

function partsOf(scan: ScannedObject): { readonly query: number; readonly documents: readonly Node[] } {
  return {
    query: lengthOf(scan, (scan.span('query') as Member).node),
    documents: scan.elements((scan.span('documents') as Member).node),
  }
}

// Returns the number of bytes of a JSON string without its quotes.
function lengthOf(scan: ScannedObject, node: Node): number {
  return scan.endOf(node) - scan.startOf(node) - 2
}

function unitsOf(pairs: readonly number[]): number {
  const chunks = pairs.reduce((sum, tokens) => sum + Math.max(1, Math.ceil(tokens / CHUNK_TOKENS)), 0)
  return Math.ceil(chunks / UNIT_CHUNKS)
}

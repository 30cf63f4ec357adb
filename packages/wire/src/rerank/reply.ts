import { errorInAnswer } from '../answer-error.ts'
import { NO_USAGE, promptTokens, type Usage } from '../usage.ts'
import { type ScanLimits, scanObject } from '../json/json-scan.ts'
import { isErrorMember, type ReplyFacts } from '../reply-facts.ts'
import type { Member, Node, ScannedObject } from '../json/scanned-object.ts'
import { type RerankRequest, documentTextNode, bytesOfValue } from './request.ts'
import { asRecord, parseRecord } from '../json/record.ts'
import {
  plausibleCountAt,
  type UpstreamCounts,
  largestCount,
  type ReportedUsage,
  plausibleCount,
} from '../reported-usage.ts'

/**
 * What was read of an upstream's response, and a function that writes the response for the client after the
 * call was charged.
 */
export interface RerankReply {
  readonly facts: ReplyFacts
  body(charged: Usage): Buffer
}

/** A result as the upstream wrote it. */
interface RankedResult {
  readonly index: number
  readonly score: number
  readonly scoreNode: Node
  readonly document: Node | undefined
}

/** How documents are returned: as the client sent them, or always as objects with `text`. */
export type DocumentForm = 'as sent' | 'object'

/** Limits for parsing a response. They allow one result for each document that a request may contain. */
const REPLY_LIMITS: ScanLimits = { depth: 128, nodes: 4_000_000, members: 1_000 }

/** Names that upstreams give to the list of results. */
const LISTS = ['results', 'data'] as const

/**
 * Reads the response to `request`, whose bytes are in `scan`; never throws. A response is valid if it has a
 * list of results, each with a finite score and with the index of a document that no other result has. The
 * client gets the results sorted by score (equal scores in the upstream's order), at most `top_n`, and the
 * usage. If the client wants documents and the upstream omits them, they are taken from the request: as
 * objects if they were sent as objects or if `documentForm` demands it. Everything else is sent as the
 * upstream wrote it.
 */
export function readRerankReply(
  received: Buffer,
  scan: ScannedObject,
  request: RerankRequest,
  documentForm: DocumentForm,
): RerankReply {
  const reply = scanned(isListAtRoot(received) ? asResults(received) : received)
  const list = reply && LISTS.map((key) => reply.span(key)).find((member) => isList(reply, member))
  const error =
    list && !isErrorMember(reply.value('error'))
      ? undefined
      : errorInAnswer(parseRecord(received.toString()), false)
  const found = reply && list && !error ? rankedResults(reply, list, request.documents.length) : undefined
  // Without any member, an empty list could be anything.
  const ranked = received === reply?.bytes || found?.length ? found : undefined
  if (!reply || !list || !ranked) {
    const facts = { valid: false, error, usage: undefined, text: () => '' }
    return { facts, body: () => received }
  }
  const { bytes } = reply
  return {
    facts: { valid: true, error: undefined, usage: readRerankUsage(reply), text: () => '' },
    body: (charged) => {
      const best = ranked.toSorted((a, b) => b.score - a.score).slice(0, request.topN)
      const results = best.map((result) => resultPieces(reply, result, scan, request, documentForm))
      const pieces = [Buffer.from('{"results":['), ...separated(results), Buffer.from(']')]
      pieces.push(Buffer.from(`,"usage":${writeRerankUsage(charged)}`))
      for (const member of reply.members.values()) {
        if (member !== list && member.key !== 'results' && member.key !== 'usage')
          pieces.push(COMMA, bytes.subarray(member.keyStart, member.end))
      }
      return Buffer.concat([...pieces, END])
    },
  }
}

/** Whether an answer is a list, as that of text-embeddings-inference: https://huggingface.github.io/text-embeddings-inference/ */
function isListAtRoot(bytes: Buffer): boolean {
  return bytes.subarray(0, MAX_SPACE_BYTES).toString('latin1').trimStart().startsWith('[')
}

/** Number of bytes before an answer that may be white space. */
const MAX_SPACE_BYTES = 64

function asResults(list: Buffer): Buffer {
  return Buffer.concat([Buffer.from('{"results":'), list, END])
}

const COMMA = Buffer.from(',')
const END = Buffer.from('}')

function scanned(bytes: Buffer): ScannedObject | undefined {
  try {
    return scanObject(bytes, REPLY_LIMITS)
  } catch {
    return undefined
  }
}

function isList(reply: ScannedObject, member: Member | undefined): boolean {
  return member !== undefined && reply.kindOf(member.node) === 'array'
}

/** Reads the results; undefined if one of them is invalid. */
function rankedResults(
  reply: ScannedObject,
  { node }: Member,
  documents: number,
): RankedResult[] | undefined {
  const seen = new Set<number>()
  const results: RankedResult[] = []
  for (const element of reply.elements(node)) {
    if (reply.kindOf(element) !== 'object') return undefined
    const index = numberIn(reply, element, 'index')?.value ?? -1
    const score = numberIn(reply, element, 'relevance_score') ?? numberIn(reply, element, 'score')
    if (!Number.isInteger(index) || index < 0 || index >= documents || seen.has(index)) return undefined
    if (!score || !Number.isFinite(score.value)) return undefined
    seen.add(index)
    const document = reply.memberOf(element, 'document') ?? reply.memberOf(element, 'text')
    results.push({ index, score: score.value, scoreNode: score.node, document })
  }
  return results
}

function numberIn(
  reply: ScannedObject,
  element: Node,
  key: string,
): { readonly node: Node; readonly value: number } | undefined {
  const node = reply.memberOf(element, key)
  if (node === undefined || reply.kindOf(node) !== 'number') return undefined
  return { node, value: reply.parse(node) as number }
}

/**
 * Renders a result. The score is copied digit by digit, and a document from the upstream is copied unchanged.
 */
function resultPieces(
  reply: ScannedObject,
  { index, scoreNode, document }: RankedResult,
  scan: ScannedObject,
  { documents, returnDocuments }: RerankRequest,
  documentForm: DocumentForm,
): Buffer[] {
  const head = `{"index":${index},"relevance_score":${bytesOfValue(reply, scoreNode).toString('latin1')}`
  if (!returnDocuments) return [Buffer.from(`${head}}`)]
  const sent = documents[index] as Node
  const isReturned = document !== undefined && hasText(reply, document)
  const [json, node] = isReturned ? ([reply, document] as const) : ([scan, sent] as const)
  const text = bytesOfValue(json, node)
  const isObject = documentForm === 'object' || scan.kindOf(sent) === 'object'
  if (!isObject || json.kindOf(node) === 'object') return [Buffer.from(`${head},"document":`), text, END]
  return [Buffer.from(`${head},"document":{"text":`), text, END, END]
}

/** Whether a document contains text. Some servers send an empty text or object instead of leaving it out. */
function hasText(reply: ScannedObject, document: Node): boolean {
  const node = documentTextNode(reply, document)
  return node !== undefined && reply.endOf(node) - reply.startOf(node) > '""'.length
}

function separated(groups: readonly (readonly Buffer[])[]): Buffer[] {
  return groups.flatMap((group, position) => (position === 0 ? group : [COMMA, ...group]))
}

const NONE: UpstreamCounts = {}

/**
 * Reads the usage of a rerank upstream: tokens, and search units (`meta.billed_units.search_units`) of providers
 * that charge by them; undefined if it reports neither. Implausible numbers are ignored. Tokens are taken from
 * the first of these that is present:
 * - `usage`, with the prompt's tokens or only a total: everything that was not generated was read;
 * - `meta.tokens`, the tokens that the model read;
 * - `meta.billed_units`, the units that the provider charges.
 */
export function readRerankUsage(reply: ScannedObject): ReportedUsage | undefined {
  const usage = asRecord(reply.value('usage')) ?? NONE
  const reported = asRecord(reply.value('meta')) ?? NONE
  const billed = asRecord(reported['billed_units']) ?? NONE
  const places = [usage, asRecord(reported['tokens']) ?? NONE, billed]
  const tokens = places.map(tokensIn).find((found) => found !== undefined)
  const units = billed['search_units']
  // Cohere's schema allows fractions of a search unit.
  const searchUnits = plausibleCount(typeof units === 'number' ? Math.ceil(units) : undefined) ?? 0
  if (tokens) return { ...tokens, searchUnits }
  return searchUnits > 0 ? { ...NO_USAGE, searchUnits, promptIsUnknown: true } : undefined
}

function tokensIn(counts: UpstreamCounts): Usage | undefined {
  const output = largestCount(counts, 'completion_tokens', 'output_tokens')
  // Some providers fill in only the total and leave the prompt at zero.
  const input =
    largestCount(counts, 'prompt_tokens', 'input_tokens') || plausibleCountAt(counts, 'total_tokens') - output
  return input > 0 ? { ...NO_USAGE, input, output } : undefined
}

/** Writes the usage as in `docs/api.md: Rerank result`. */
export function writeRerankUsage(usage: Usage): string {
  const prompt = promptTokens(usage)
  return JSON.stringify({
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
  })
}

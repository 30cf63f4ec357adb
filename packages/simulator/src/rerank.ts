import { type Fields, asFields, asList, asNumber, asString } from './fields.ts'
import { Refusal } from './refusal.ts'
import { keywords } from './topic.ts'
import { bearerToken, bodyOfPost, type Reply, type ReplyTimeAndIds, type Upstream } from './upstream.ts'

// Number of documents that cost one search unit.
const DOCUMENTS_A_UNIT = 100

/** Creates a simulated provider of reranking, in version 2 of Cohere's protocol. */
export function rerankUpstream(models: readonly string[]): Upstream {
  return {
    bodyIfServed: bodyOfPost('/rerank'),
    models,
    keyOf: bearerToken,
    reply,
    refuse: ({ message }) => ({ message }),
  }
}

function reply(body: Fields, _model: string, stamp: ReplyTimeAndIds): Reply {
  const query = asString(body.query)
  const documents = asList(body.documents)
  if (query === '') throw new Refusal('malformed', 'query is required')
  if (documents.length === 0) throw new Refusal('malformed', 'documents: at least one is required')
  const queryWords = new Set(keywords(query))
  const ranked = documents
    .map((document, index) => ({ index, relevance_score: score(queryWords, documentText(document)) }))
    .sort((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, asNumber(body.top_n) ?? documents.length)
  const results =
    body.return_documents === true
      ? ranked.map(({ index, relevance_score }) => ({
          index,
          relevance_score,
          document: { text: documentText(documents[index]) },
        }))
      : ranked
  const units = Math.ceil(documents.length / DOCUMENTS_A_UNIT)
  const billed = { api_version: { version: '2' }, billed_units: { search_units: units } }
  return { kind: 'whole', body: { id: stamp.id(''), results, meta: billed }, tokens: 0 }
}

function documentText(document: unknown): string {
  return typeof document === 'string' ? document : asString(asFields(document).text)
}

/**
 * Scores a document: the share (0 to 1) of the query's words that it contains, slightly less for a long
 * document.
 */
function score(queryWords: ReadonlySet<string>, document: string): number {
  const documentWords = keywords(document)
  const matches = new Set(documentWords.filter((word) => queryWords.has(word))).size
  const share = queryWords.size === 0 ? 0 : matches / queryWords.size
  const brevity = 1 / (1 + documentWords.length / 200)
  return Math.round((0.02 + 0.96 * share * brevity) * 1e7) / 1e7
}

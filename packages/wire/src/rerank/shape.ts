import { defineShape } from '../shape/define-shape.ts'

/** Rerank, of both versions. https://docs.cohere.com/reference/rerank */
export const RERANK_REQUEST = defineShape({
  Request: {
    documents: 'text | Document of user',
    max_chunks_per_doc: 'number',
    max_tokens_per_doc: 'number',
    model: 'name',
    query: 'text of user',
    rank_fields: 'text',
    return_documents: 'number',
    top_n: 'number',
  },
  Document: { text: 'text' },
})

/** Results of rerank, of both versions. https://docs.cohere.com/reference/rerank */
export const RERANK_ANSWER = defineShape(
  {
    Answer: {
      id: 'id',
      meta: 'Meta of provider',
      model: 'name',
      object: 'term',
      results: 'Result',
      usage: 'term of provider',
    },
    Meta: { api_version: 'term', billed_units: 'term', tokens: 'term', warnings: 'text' },
    Result: { document: 'text | Document', index: 'number', relevance_score: 'number' },
    Document: { text: 'text' },
  },
  undefined,
  'Answer',
)

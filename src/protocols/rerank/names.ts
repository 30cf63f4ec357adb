import { names, requestNames } from '../request-names.ts'
import { CHECKS } from './request.ts'

/** Names of requests for a rerank. */
export const rerankNames = requestNames(
  [...CHECKS.keys(), 'max_chunks_per_doc', 'max_tokens_per_doc', 'rank_fields'],
  { documents: names('text') },
)

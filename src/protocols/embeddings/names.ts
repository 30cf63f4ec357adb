import { requestNames } from '../request-names.ts'
import { CHECKS } from './request.ts'

/** Names of requests for embeddings. */
export const embeddingsNames = requestNames([...CHECKS.keys(), 'output_dtype', 'user'])

/** Exports of the rerank protocol. */
export {
  adaptRerankRequest,
  readRerankRequest,
  RERANK_PROMPT_RULES,
  rerankFieldNames,
  rerankRequestSchema,
  searchUnitBound,
  searchUnits,
} from './request.ts'
export { type DocumentForm, readRerankReply } from './reply.ts'
export { RERANK_REQUEST } from './shape.ts'

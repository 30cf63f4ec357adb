/** Exports of the rerank protocol. */
export {
  gateRerankRequest,
  readRerankRequest,
  RERANK_PROMPT,
  rerankNames,
  rerankRequestSchema,
  searchUnitBound,
  searchUnits,
} from './request.ts'
export { type DocumentForm, readRerankReply } from './reply.ts'

/** Public interface of the rerank dialect. */
export { gateRerankRequest } from './request.ts'
export { RERANK_PROMPT } from './request.ts'
export { type DocumentForm, readRerankReply } from './reply.ts'
export { readRerankRequest, rerankRequestSchema } from './request.ts'
export { searchUnitBound, searchUnits } from './request.ts'
export { rerankNames } from './request.ts'

/** The rerank wire format, as far as the rest of the gateway sees it. */
export { gateRerankRequest } from './gate.ts'
export { promptText } from './prompt.ts'
export { readRerankReply } from './reply.ts'
export { readRerankRequest, rerankRequestSchema } from './request.ts'

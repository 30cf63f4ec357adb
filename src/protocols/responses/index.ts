/** The Responses API's wire format, as far as the rest of the gateway sees it. */
export { responsesCodec } from './codec.ts'
export { maxTokensOf } from './encode-request.ts'
export { gateResponsesRequest } from './gate.ts'
export { promptText } from './prompt.ts'
export { usageOfCompaction, usageOfResponse } from './reply.ts'
export { readResponsesRequest, responsesRequestSchema } from './request.ts'
export { countableText, countedModel, readCompactionRequest } from './side-requests.ts'
export { ResponsesTap } from './tap.ts'

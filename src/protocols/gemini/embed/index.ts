/** Embeddings of the Gemini API. */
export { encodeEmbedRequests } from './encode-request.ts'
export { gateEmbedRequest } from './gate.ts'
export { embeddedText } from './prompt.ts'
export { encodeEmbedReply, EmbedReply, embedFacts } from './reply.ts'
export { decodeEmbedRequest, type EmbedMethod, embedRequestSchema, readEmbedRequest } from './request.ts'

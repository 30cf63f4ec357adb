/** Embeddings of the Gemini API. */
export { batchForm } from './forms.ts'
export { embedContentForm, predictForm } from './forms.ts'
export { gateEmbedRequest } from './request.ts'
export { EmbedReply, EmbedReplyWriter } from './reply.ts'
export { decodeEmbedRequest, type EmbedMethod, embedRequestSchema, readEmbedRequest } from './request.ts'

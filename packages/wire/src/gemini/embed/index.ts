/** Embeddings of the Gemini API. */
export { batchForm } from './forms.ts'
export { embedContentForm, predictForm } from './vertex-forms.ts'
export { gateEmbedRequest } from './gate.ts'
export { EmbedReply, EmbedReplyWriter } from './reply.ts'
export { decodeEmbedRequest, type EmbedMethod, embedRequestSchema, readEmbedRequest } from './request.ts'

/** Embeddings in the Gemini protocol. */
export { batchForm, embedContentForm, predictForm } from './embeddings-apis.ts'
export {
  decodeEmbedRequest,
  type EmbedMethod,
  embedRequestSchema,
  gateEmbedRequest,
  readEmbedRequest,
} from './request.ts'
export { EmbedReply, EmbedReplyWriter } from './embeddings-apis.ts'

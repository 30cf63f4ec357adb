/** Embeddings in the Gemini protocol. */
export { batchEmbedContentsApi, embedContentApi, predictApi } from './embeddings-apis.ts'
export {
  decodeEmbedRequest,
  type EmbedMethod,
  embedRequestSchema,
  adaptEmbedRequest,
  readEmbedRequest,
} from './request.ts'
export { EmbedReply, EmbedReplyWriter } from './embeddings-apis.ts'
export { GEMINI_EMBED_REQUEST } from '../shape.ts'

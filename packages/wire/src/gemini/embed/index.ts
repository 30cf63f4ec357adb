/** Embeddings in the Gemini protocol. */
export { batchForm, embedContentForm, predictForm } from './forms.ts'
export {
  decodeEmbedRequest,
  type EmbedMethod,
  embedRequestSchema,
  gateEmbedRequest,
  readEmbedRequest,
} from './request.ts'
export { EmbedReply, EmbedReplyWriter } from './forms.ts'

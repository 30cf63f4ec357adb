/** Exports of the embeddings protocol. */
export {
  EMBEDDINGS_LIMITS,
  EMBEDDINGS_PROMPT,
  embeddingsNames,
  embeddingsRequestSchema,
  readEmbeddingsRequest,
} from './request.ts'
export { EmbeddingsReply } from './reply.ts'
export { checkTexts, decodeTexts, openAiEmbedForm } from './openai-embeddings-api.ts'
export { VectorsWriter } from './vectors.ts'

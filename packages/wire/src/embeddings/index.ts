/** Exports of the embeddings protocol. */
export {
  EMBEDDINGS_LIMITS,
  EMBEDDINGS_PROMPT_RULES,
  embeddingsFieldNames,
  embeddingsRequestSchema,
  readEmbeddingsRequest,
} from './request.ts'
export { EmbeddingsReply } from './reply.ts'
export { requireTextInputs, decodeTexts, openAiEmbeddingsApi } from './openai-embeddings-api.ts'
export { VectorsWriter } from './vectors.ts'
export { EMBEDDINGS_REQUEST } from './shape.ts'

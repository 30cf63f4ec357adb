/** Public interface of the embeddings dialect. */
export { EMBEDDINGS_LIMITS } from './request.ts'
export { embeddingsRequestSchema, readEmbeddingsRequest } from './request.ts'
export { EMBEDDINGS_PROMPT } from './request.ts'
export { EmbeddingsReply } from './reply.ts'
export { textForm } from './text-form.ts'
export { checkTexts, decodeTexts } from './text-form.ts'
export { VectorsWriter } from './vectors.ts'
export { embeddingsNames } from './request.ts'
